//! Whose operation goes first.

/// Whether an operation passes by others of its key type that wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// It waits until those before it have had their turn.
    #[default]
    Normal,
    /// It passes by those of normal priority, which keep one place in eight.
    Urgent,
}
