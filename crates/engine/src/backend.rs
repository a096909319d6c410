//! Backends: SIMD lanes, or plain BoringSSL.

use crate::{Job, Key, KeyType, MlKem768, Overflow, P256, Prices, X25519};
use std::sync::Arc;

/// Computes private-key operations, several at once where possible.
pub trait Backend: Send + Sync + 'static {
    /// Name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Number of operations of this type that one pass computes at the price of one. Does not change.
    fn width(&self, key_type: KeyType) -> usize;

    /// Smallest batch for which a pass is cheaper than the scalar backend, which computes smaller batches. Does not
    /// change; a value above [`width`](Self::width) means never.
    fn crossover(&self, key_type: KeyType) -> usize {
        let _ = key_type;
        1
    }

    /// Costs of passes of this type, if they were measured. Without them, operations do not wait for a batch to fill.
    fn prices(&self, key_type: KeyType) -> Option<Prices> {
        let _ = key_type;
        None
    }

    /// Precomputes values that depend on the key alone, to be kept in [`Key::prepared`]. May be called several times
    /// for one key, or never.
    fn prepare(&self, key: &Key) {
        let _ = key;
    }

    /// Computes every job of the batch and finishes each as soon as its result is available. All jobs have the same
    /// key type, each with its own key. They fill whole passes, or one pass in part. A job that is not finished, or
    /// has a result that does not verify, is computed again by the scalar backend.
    fn compute(&self, batch: &mut [Job<'_>]);

    /// Returns whether results have already been checked against the public key. If not, the engine checks them. Does
    /// not change.
    fn verifies(&self) -> bool;

    /// Backend for X25519 of several connections, if that is cheaper than one operation after the other.
    fn x25519(&self) -> Option<&dyn X25519> {
        None
    }

    /// Backend for ECDH on P-256 of several connections, if that is cheaper than BoringSSL.
    fn p256(&self) -> Option<&dyn P256> {
        None
    }

    /// Backend for ML-KEM-768 encapsulation for several connections, if that is cheaper than one after the other.
    fn ml_kem(&self) -> Option<&dyn MlKem768> {
        None
    }

    /// Overflow for the load that exceeds this backend. Called once, when the engine starts.
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
