//! What computes: SIMD lanes, or plain BoringSSL.

use crate::{Job, Key, KeyType, MlKem768, Overflow, P256, Prices, X25519};
use std::sync::Arc;

/// Computes private-key operations, several at once where it can.
pub trait Backend: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// How many operations of this type one pass computes for the price of one. Does not change.
    fn width(&self, key_type: KeyType) -> usize;

    /// From how many operations on a pass is cheaper than the scalar backend, which gets the smaller batches.
    /// Does not change; above [`width`](Self::width) it means never.
    fn crossover(&self, key_type: KeyType) -> usize {
        let _ = key_type;
        1
    }

    /// What passes of this type cost, if that was measured. Without it, nothing waits for company.
    fn prices(&self, key_type: KeyType) -> Option<Prices> {
        let _ = key_type;
        None
    }

    /// Computes ahead what depends on the key alone, to be kept in [`Key::prepared`]. It may be called several times
    /// for one key, or never.
    fn prepare(&self, key: &Key) {
        let _ = key;
    }

    /// Computes every job of the batch and finishes each as soon as its result is there. All are of one key type, each
    /// with its own key. They fill whole passes, or one pass in part. A job that is not finished, or whose result does
    /// not verify, is computed again by the scalar backend.
    fn compute(&self, batch: &mut [Job<'_>]);

    /// Whether results have already been checked against the public key. If not, the engine does it. Does not change.
    fn verifies(&self) -> bool;

    /// Who computes X25519 of several connections, if that is cheaper than one after the other.
    fn x25519(&self) -> Option<&dyn X25519> {
        None
    }

    /// Who computes ECDH on P-256 of several connections, if that is cheaper than BoringSSL.
    fn p256(&self) -> Option<&dyn P256> {
        None
    }

    /// Who encapsulates secrets of ML-KEM-768 for several connections, if that is cheaper than one after the other.
    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        None
    }

    /// Who computes what is too much for this backend. Asked once, when the engine starts.
    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        None
    }
}

impl Backend for Box<dyn Backend> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn width(&self, key_type: KeyType) -> usize {
        (**self).width(key_type)
    }

    fn crossover(&self, key_type: KeyType) -> usize {
        (**self).crossover(key_type)
    }

    fn prices(&self, key_type: KeyType) -> Option<Prices> {
        (**self).prices(key_type)
    }

    fn prepare(&self, key: &Key) {
        (**self).prepare(key);
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        (**self).compute(batch);
    }

    fn verifies(&self) -> bool {
        (**self).verifies()
    }

    fn x25519(&self) -> Option<&dyn X25519> {
        (**self).x25519()
    }

    fn p256(&self) -> Option<&dyn P256> {
        (**self).p256()
    }

    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        (**self).ml_kem()
    }

    fn overflow(&self) -> Option<Arc<dyn Overflow>> {
        (**self).overflow()
    }
}
