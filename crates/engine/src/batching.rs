//! Batch sizes.

use std::time::Duration;

/// Batching parameters of one key type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Number of operations that one pass of the backend computes at the price of one; at least 1.
    pub width: usize,
    /// Largest number of operations for which a pass costs half of a full one; `width` if there is no cheaper half.
    /// At least `crossover`, if that is not above `width`.
    pub half: usize,
    /// Smallest batch for the backend; smaller ones go to the scalar backend. At most `width`, or `usize::MAX` if the
    /// backend never pays.
    pub crossover: usize,
    /// Maximum number offered to the backend at once, if the wait for a longer pass is not worthwhile.
    pub most: usize,
    /// CPU time of a lone operation, which is saved if it is batched; zero if unknown.
    pub price: Duration,
}

/// CPU time of a backend's batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// One operation by itself.
    pub lone: Duration,
    /// A pass of up to half the width.
    pub half: Duration,
    /// A full pass.
    pub full: Duration,
}

/// A longer pass is not filled beyond the half that costs half: an operation that arrives during a pass waits for all
/// of it before its own pass, and the fuller pass saves a few per cent. RSA-4096 has such passes
/// (docs/kernels/measurements.md).
const LONG_PASS: Duration = Duration::from_millis(5);

impl Batching {
    /// One operation after the other.
    pub(crate) const NEVER: Self =
        Self { width: 1, half: 1, crossover: usize::MAX, most: usize::MAX, price: Duration::ZERO };

    pub(crate) fn new(width: usize, crossover: usize) -> Self {
        match crossover.max(1) {
            crossover if crossover <= width => Self { width, half: width, crossover, ..Self::NEVER },
            _ => Self::NEVER,
        }
    }

    /// Returns the batching adjusted to the measured prices.
    pub(crate) fn priced(self, Prices { lone, half, full }: Prices) -> Self {
        let halves = half * 5 <= full * 3 && self.crossover <= self.width / 2;
        match self.width / 2 {
            0 => self,
            half if halves && full > LONG_PASS => Self { width: half, half, most: half, price: lone, ..self },
            half if halves => Self { half, price: lone, ..self },
            _ => Self { half: self.width, price: lone, ..self },
        }
    }

    /// Returns the CPU time saved by computing `operations` together in `cpu`.
    pub(crate) fn saved(self, operations: usize, cpu: Duration) -> Duration {
        let apart = self.price.saturating_mul(u32::try_from(operations).unwrap_or(u32::MAX));
        apart.saturating_sub(cpu)
    }

    /// Returns how many of `count` operations are cheaper together: whole passes, and the remainder if it pays.
    pub(crate) fn worth(self, count: usize) -> usize {
        let beyond = count % self.width;
        if beyond >= self.crossover { count } else { count - beyond }
    }
}

#[cfg(test)]
mod tests {
    use super::{Batching, Duration, Prices};

    #[test]
    fn half_a_pass_is_one_that_costs_little_more_than_half() {
        let priced = |crossover, half, full| {
            let [lone, half, full] = [200, half, full].map(Duration::from_micros);
            let batching = Batching::new(8, crossover).priced(Prices { lone, half, full });
            assert_eq!(batching.price, lone);
            batching.half
        };
        assert_eq!(priced(1, 250, 490), 4);
        assert_eq!(priced(4, 250, 490), 4);
        assert_eq!(priced(5, 250, 490), 8, "half a pass goes to the scalar backend");
        assert_eq!(priced(1, 450, 490), 8);
        let [lone, half, full] = [Duration::from_secs(1); 3];
        assert_eq!(Batching::NEVER.priced(Prices { lone, half, full }), Batching::NEVER);
    }

    #[test]
    fn long_passes_are_half_ones() {
        let [lone, half, full] = [2400, 4500, 9000].map(Duration::from_micros);
        let priced = Batching::new(8, 1).priced(Prices { lone, half, full });
        assert_eq!((priced.width, priced.half, priced.most), (4, 4, 4));
        let whole = Batching::new(8, 1).priced(Prices { lone, half: full, full });
        assert_eq!((whole.width, whole.half), (8, 8), "half a pass costs as much as a whole one");
        let late = Batching::new(8, 5).priced(Prices { lone, half, full });
        assert_eq!(late.width, 8, "half a pass does not pay");
    }

    #[test]
    fn what_is_saved_is_the_price_of_each_less_what_they_took() {
        let us = Duration::from_micros;
        let priced = Batching::new(8, 1).priced(Prices { lone: us(200), half: us(250), full: us(490) });
        assert_eq!(priced.saved(8, us(500)), us(1100));
        assert_eq!(priced.saved(1, us(250)), Duration::ZERO, "nothing is lost");
        assert_eq!(Batching::new(8, 1).saved(8, us(1)), Duration::ZERO, "no price is known");
    }
}
