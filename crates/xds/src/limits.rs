//! Bounds on what a control plane can make a gateway keep.

/// A server that exceeds one of these gets a NACK, or loses its stream if it is the message itself that is too large.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes of one response.
    pub message: usize,
    /// Resources of one kind, and names asked for.
    pub resources: usize,
    /// Bytes of a resource's name.
    pub name: usize,
    /// Nodes of all trees that one response makes.
    pub nodes: usize,
    /// Levels of messages inside each other.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 64 << 20, resources: 100_000, name: 4096, nodes: 4_000_000, depth: 64 }
    }
}
