use std::num::NonZeroUsize;

/// Which handshakes are measured message by message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sampling {
    /// One of so many, counted on each event loop; the first is one of them.
    pub one_in: NonZeroUsize,
    /// At most so many in a second, on each event loop.
    pub per_second: NonZeroUsize,
}

impl Default for Sampling {
    fn default() -> Self {
        let count = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self { one_in: count(64), per_second: count(100) }
    }
}
