//! Keys outside this process's memory, such as in tokens of PKCS#11. Another component computes their operations, and
//! the engine checks the results.

use crate::{Operation, OperationError, PublicKey};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Private half of a key that the engine does not have.
pub trait ExternalKey: Send + Sync + 'static {
    /// Name of the backend in metrics.
    fn backend(&self) -> &'static str;

    /// Takes an operation that fits the key. Must not block, and must finish the operation within a bounded time.
    ///
    /// # Errors
    /// [`QueueFull`](OperationError::QueueFull) if too many operations wait, [`Failed`](OperationError::Failed) if the
    /// key is not available.
    fn submit(&self, operation: Arc<dyn ExternalOperation>) -> Result<(), OperationError>;
}

/// One operation with an external key. Dropping the last reference fails an unfinished one.
pub trait ExternalOperation: Send + Sync {
    /// Operation to compute.
    fn operation(&self) -> &Operation;

    /// Public half of its key.
    fn public(&self) -> &PublicKey;

    /// Marks the operation as begun. Returns whether its result is still wanted.
    fn begin(&self) -> bool;

    /// Returns whether the operation was finished or withdrawn.
    fn is_over(&self) -> bool;

    /// Sets the result, a signature in its TLS form or the raw RSA result, and wakes the waiting task. Only the first
    /// call counts. Returns false if the public key does not confirm the result; the operation has then failed.
    fn finish(&self, result: Result<Zeroizing<Vec<u8>>, OperationError>) -> bool;
}
