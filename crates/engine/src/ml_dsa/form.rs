//! Private keys of ML-DSA in PKCS #8 (RFC 9881 section 6): the seed, the expanded key, or both.

use super::private::MlDsaPrivate;
use crate::{error::KeyError, key_form::element};
use quadrille_kernels::MlDsa;

const SEQUENCE: u8 = 0x30;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// `[0]` of ML-DSA-PrivateKey.
const SEED: u8 = 0x80;
/// `[1]` of a OneAsymmetricKey: the public key (RFC 5958 section 2).
const PUBLIC_KEY: u8 = 0x81;

/// Arc of the signature algorithms of NIST, `2.16.840.1.101.3.4.3`. Pure ML-DSA has 17 to 19, HashML-DSA 32 to 34.
const ARC: &[u8] = &[0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x03];

/// Reads an ML-DSA key; `None` for a key of another algorithm.
pub(crate) fn read(der: &[u8]) -> Option<Result<MlDsaPrivate, KeyError>> {
    let (SEQUENCE, body, []) = element(der)? else { return None };
    let (INTEGER, [0 | 1], rest) = element(body)? else { return None };
    let (SEQUENCE, algorithm, rest) = element(rest)? else { return None };
    let (OBJECT_IDENTIFIER, id, parameters) = element(algorithm)? else { return None };
    let set = match id.strip_prefix(ARC)? {
        [17] => MlDsa::MlDsa44,
        [18] => MlDsa::MlDsa65,
        [19] => MlDsa::MlDsa87,
        [32..=34] => return Some(Err(KeyError::HashMlDsa)),
        _ => return None,
    };
    if !parameters.is_empty() {
        return Some(Err(KeyError::MlDsaParameters(name(set))));
    }
    let malformed = KeyError::MlDsaForm(name(set), set.private_key_bytes());
    let Some((OCTET_STRING, key, rest)) = element(rest) else { return Some(Err(malformed)) };
    let Some(private) = Parts::split(set, key) else { return Some(Err(malformed)) };
    let private = private.join(set).filter(|private| belongs(private, rest));
    Some(private.ok_or(KeyError::MlDsaInconsistent(name(set))))
}

/// Name of the parameter set in messages.
pub(crate) fn name(set: MlDsa) -> &'static str {
    match set {
        MlDsa::MlDsa44 => "ML-DSA-44",
        MlDsa::MlDsa65 => "ML-DSA-65",
        MlDsa::MlDsa87 => "ML-DSA-87",
    }
}

/// Parts of an ML-DSA-PrivateKey.
enum Parts<'a> {
    Seed(&'a [u8; 32]),
    Expanded(&'a [u8]),
    Both(&'a [u8; 32], &'a [u8]),
}

impl<'a> Parts<'a> {
    fn split(set: MlDsa, key: &'a [u8]) -> Option<Self> {
        let is_expanded = |bytes: &[u8]| bytes.len() == set.private_key_bytes();
        match element(key)? {
            (SEED, seed, []) => seed.try_into().ok().map(Self::Seed),
            (OCTET_STRING, expanded, []) if is_expanded(expanded) => Some(Self::Expanded(expanded)),
            (SEQUENCE, both, []) => {
                let (OCTET_STRING, seed, rest) = element(both)? else { return None };
                let (OCTET_STRING, expanded, []) = element(rest)? else { return None };
                let seed = seed.try_into().ok().filter(|_| is_expanded(expanded))?;
                Some(Self::Both(seed, expanded))
            }
            _ => None,
        }
    }

    /// Returns the key, if its parts belong together.
    fn join(self, set: MlDsa) -> Option<MlDsaPrivate> {
        match self {
            Self::Seed(seed) => MlDsaPrivate::from_seed(set, seed),
            Self::Expanded(expanded) => MlDsaPrivate::from_expanded(set, expanded),
            Self::Both(seed, expanded) => {
                MlDsaPrivate::from_seed(set, seed).filter(|private| private.expands_to(expanded))
            }
        }
    }
}

/// Returns whether the public key in the last fields of a OneAsymmetricKey, if it is there, belongs to the key.
fn belongs(private: &MlDsaPrivate, mut fields: &[u8]) -> bool {
    while let Some((tag, contents, rest)) = element(fields) {
        if tag == PUBLIC_KEY && contents.strip_prefix(&[0]) != Some(private.key().public_key().encoded()) {
            return false;
        }
        fields = rest;
    }
    fields.is_empty()
}
