//! Priority of operations.

/// Whether an operation overtakes others of its key type in the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// Is computed in the order of submission.
    #[default]
    Normal,
    /// Overtakes operations of normal priority, which keep one place in eight.
    Urgent,
}
