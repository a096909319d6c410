//! How many operations go together.

/// How operations of one key type are batched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// How many one pass of the backend computes for the price of one; at least 1.
    pub width: usize,
    /// Fewer are computed by the scalar backend; at most `width`, or `usize::MAX` if the backend never pays.
    pub crossover: usize,
}

impl Batching {
    /// One operation after the other.
    pub(crate) const NEVER: Self = Self { width: 1, crossover: usize::MAX };

    pub(crate) fn new(width: usize, crossover: usize) -> Self {
        match crossover.max(1) {
            crossover if crossover <= width => Self { width, crossover },
            _ => Self::NEVER,
        }
    }

    /// How many of so many operations are cheaper together: whole passes, and what is left over if it pays.
    pub(crate) fn worth(self, count: usize) -> usize {
        let beyond = count % self.width;
        if beyond >= self.crossover { count } else { count - beyond }
    }
}
