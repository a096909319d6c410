//! ML-DSA on the chosen tier.

use crate::lanes::Lanes;
#[cfg(target_arch = "x86_64")]
use crate::ml_dsa;
use crate::ml_dsa::{
    MlDsa, MlDsaCandidate, MlDsaKey, MlDsaMessage, MlDsaPublicKey, MlDsaSignature, MlDsaStart,
    MlDsaVerification,
};
use crate::ml_dsa_tier::Tier;

/// Evaluates an expression with the tier's pool.
macro_rules! with_pool {
    ($lanes:expr, $pool:ident => $value:expr) => {
        match $lanes.ml_dsa() {
            Tier::Portable($pool) => $value,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx2($pool) => $value,
            #[cfg(target_arch = "x86_64")]
            Tier::Avx512($pool) => $value,
        }
    };
}

impl Lanes {
    /// Number of operations of ML-DSA that are computed at once; 1 if there are no lanes. A batch of
    /// [`sign_ml_dsa`](Self::sign_ml_dsa) is best several times as long: lanes then wait least for the operations that
    /// take most attempts. Fewer operations use the lanes, too.
    pub fn ml_dsa_width(&self) -> usize {
        match self.ml_dsa() {
            Tier::Portable(_) => 1,
            #[cfg(target_arch = "x86_64")]
            _ => ml_dsa::SLOTS,
        }
    }

    /// Generates a private key from its seed xi (FIPS 204, algorithm 6). It can be used with all tiers.
    pub fn ml_dsa_key(&self, set: MlDsa, seed: &[u8; 32]) -> MlDsaKey {
        with_pool!(self, pool => pool.key(set, seed))
    }

    /// Parses a private key in the expanded form (FIPS 204, algorithm 25); `None` if it has another length, contains
    /// invalid numbers, or if its parts contradict each other. It can be used with all tiers.
    pub fn ml_dsa_expanded_key(&self, set: MlDsa, encoded: &[u8]) -> Option<MlDsaKey> {
        with_pool!(self, pool => pool.expanded_key(set, encoded))
    }

    /// Parses a public key (FIPS 204, algorithm 23); `None` if it has another length. It can be used with all tiers.
    pub fn ml_dsa_public_key(&self, set: MlDsa, encoded: &[u8]) -> Option<MlDsaPublicKey> {
        with_pool!(self, pool => pool.public_key(set, encoded))
    }

    /// Signs, and checks each signature before it is written; one that fails a check stays unsigned. Time depends on
    /// the number of attempts, which is public by design, and not on keys.
    ///
    /// Signatures are hedged (FIPS 204, section 3.4), with random bytes of BoringSSL's generator. On the tier without
    /// lanes, libraries are faster.
    pub fn sign_ml_dsa(&self, batch: &mut [MlDsaSignature<'_>]) {
        with_pool!(self, pool => pool.sign(batch));
    }

    /// Verifies signatures. All data is considered public.
    pub fn verify_ml_dsa(&self, batch: &mut [MlDsaVerification<'_>]) {
        with_pool!(self, pool => pool.verify(batch));
    }

    /// Begins hedged signatures that another device computes; `None` without random numbers, or for a context that is
    /// too long.
    pub fn start_ml_dsa(&self, messages: &[(&MlDsaKey, MlDsaMessage<'_>)]) -> Option<Vec<MlDsaStart>> {
        with_pool!(self, pool => pool.start(messages))
    }

    /// Returns which signatures of another device are valid, and within the signer's bounds: others may reveal the key.
    pub fn confirm_ml_dsa(&self, candidates: &[MlDsaCandidate<'_>]) -> Vec<bool> {
        with_pool!(self, pool => pool.confirm(candidates))
    }

    /// Signs with the given representative and seed of masks, for tests of other implementations; `None` if a check
    /// fails.
    #[doc(hidden)]
    pub fn sign_ml_dsa_from(&self, key: &MlDsaKey, mu: &[u8; 64], rho: &[u8; 64]) -> Option<Vec<u8>> {
        with_pool!(self, pool => pool.sign_from(key, mu, rho))
    }
}
