//! What the backend cannot compute in time goes to somebody far away who computes a great many at once: a GPU.
//!
//! Such a one is slow for a single operation and cheap for thousands, so that it gets only what would wait longer here
//! than there. [`pace`] decides that.

pub mod pace;

use crate::{Job, KeyType};

/// Computes what is too much for a [`Backend`](crate::Backend).
pub trait Overflow: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// Which one it is, as its maker calls it.
    fn device(&self) -> &str;

    /// How many batches it computes at once. Does not change.
    fn lanes(&self) -> usize;

    /// The most operations of this type in one batch; 0 if it computes none of them. Does not change.
    fn capacity(&self, key_type: KeyType) -> usize;

    /// Computes jobs of one key type, and finishes those that it could. What it leaves unfinished is queued again,
    /// ahead of all others, for the backend alone. Results must have been checked against the public key.
    ///
    /// # Errors
    /// The reason, if it is of no use any more: it is not asked again.
    fn compute(&self, batch: &mut [Job<'_>]) -> Result<(), String>;
}
