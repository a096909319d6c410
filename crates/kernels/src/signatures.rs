//! ECDSA on P-256 on the chosen tier.

use crate::lanes::{Backend, Lanes};
use crate::p256::P256Signature;
#[cfg(target_arch = "x86_64")]
use crate::p256::batch;

impl Lanes {
    /// Number of operations on P-256 that are computed at once ([`sign_p256`](Self::sign_p256), and key exchange); 1
    /// if there are no lanes. Any number up to this costs the same; twice as many, which share an inversion, cost
    /// less than twice the time.
    pub fn p256_width(&self) -> usize {
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(_) => batch::LANES,
            _ => 1,
        }
    }

    /// Signs, in time that does not depend on keys, nonces or digests, and checks each signature before it is
    /// written. A signature that fails the check stays unsigned, and possibly others of the batch too. On tiers
    /// without lanes nothing is signed.
    ///
    /// Nonces are a hash of the key, the digest and random bytes of BoringSSL's generator.
    pub fn sign_p256(&self, batch: &mut [P256Signature<'_>]) {
        #[cfg(target_arch = "x86_64")]
        if let Backend::Ifma(pool) = self.backend() {
            batch::sign(pool.arithmetic(), batch);
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = batch;
    }
}
