//! What the gateway is told.

/// What the gateway should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// There is a new certificate in its file.
    Installed,
    /// An order came to nothing.
    Failed,
}
