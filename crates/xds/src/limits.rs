//! Limits on the memory that a control plane can make a gateway use.

/// Limits on responses. A control plane that exceeds one receives a NACK; if the message itself is too large, the
/// stream is closed.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum size of a response in bytes.
    pub message: usize,
    /// Maximum number of resources of a type, and of names subscribed to.
    pub resources: usize,
    /// Maximum size of a resource's name in bytes.
    pub name: usize,
    /// Maximum number of nodes in all trees of one response.
    pub nodes: usize,
    /// Maximum nesting depth of messages.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 64 << 20, resources: 100_000, name: 4096, nodes: 4_000_000, depth: 64 }
    }
}
