use std::num::NonZeroUsize;

/// Sampling of the handshakes that are measured message by message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// One handshake in this number is measured, starting with the first, on each event loop.
    pub one_in: NonZeroUsize,
    /// Maximum number of measured handshakes per second, on each event loop.
    pub per_second: NonZeroUsize,
}

impl Default for Sampling {
    fn default() -> Self {
        let count = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self { one_in: count(64), per_second: count(100) }
    }
}
