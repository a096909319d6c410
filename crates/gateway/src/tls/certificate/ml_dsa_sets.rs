//! Parameter sets of ML-DSA.

use boring::x509::X509;
use boring_sys as ffi;
use quadrille_engine::MlDsa;

/// Set of parameter sets of ML-DSA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MlDsaSets(u8);

impl MlDsaSets {
    /// Returns the parameter sets of the signatures in a chain, except those of certificates that sign themselves, which
    /// clients do not verify (RFC 8446 section 4.4.2.2).
    pub(crate) fn of_chain(chain: &[X509]) -> Self {
        let mut sets = Self::default();
        for certificate in chain.iter().filter(|certificate| certificate.issued(certificate).is_err()) {
            if let Some(set) = signed_with(certificate) {
                sets.add(set);
            }
        }
        sets
    }

    pub(super) fn add(&mut self, set: MlDsa) {
        self.0 |= bit(set);
    }

    pub(super) fn has(self, set: MlDsa) -> bool {
        self.0 & bit(set) != 0
    }

    /// Returns whether all of these are among `others`.
    pub(super) fn are_in(self, others: Self) -> bool {
        self.0 & !others.0 == 0
    }
}

fn bit(set: MlDsa) -> u8 {
    match set {
        MlDsa::MlDsa44 => 1,
        MlDsa::MlDsa65 => 2,
        MlDsa::MlDsa87 => 4,
    }
}

/// Returns the parameter set of a certificate's signature. The object identifiers are those of the keys (RFC 9881).
fn signed_with(certificate: &X509) -> Option<MlDsa> {
    match certificate.signature_algorithm().object().nid().as_raw() {
        ffi::EVP_PKEY_ML_DSA_44 => Some(MlDsa::MlDsa44),
        ffi::EVP_PKEY_ML_DSA_65 => Some(MlDsa::MlDsa65),
        ffi::EVP_PKEY_ML_DSA_87 => Some(MlDsa::MlDsa87),
        _ => None,
    }
}
