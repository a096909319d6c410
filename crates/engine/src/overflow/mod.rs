//! Overflow of load that the backend cannot compute in time to a device with large batches: a GPU.
//!
//! An overflow is slow for a single operation and cheap for thousands, so it gets only the operations that would wait
//! longer locally than there, and while CPU is scarce those that would delay others for longer. [`pace`] decides that.

pub mod pace;

use crate::{Job, KeyType};

/// Computes the load that exceeds a [`Backend`](crate::Backend).
pub trait Overflow: Send + Sync + 'static {
    /// Name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Device name given by its vendor.
    fn device(&self) -> &str;

    /// Number of batches computed at once. Does not change.
    fn lanes(&self) -> usize;

    /// Maximum number of operations of this type in one batch; 0 if the type is not supported, or none of
    /// its keys was prepared.
    fn capacity(&self, key_type: KeyType) -> usize;

    /// Computes jobs of one key type, and finishes those that succeed. Unfinished jobs are queued again, ahead of all
    /// others, for the backend alone. Results must have been checked against the public key.
    ///
    /// # Errors
    /// The reason for which the overflow must be retired; it is not called again.
    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String>;
}
