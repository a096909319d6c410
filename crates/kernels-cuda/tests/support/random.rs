//! Reproducible random numbers.

#![allow(dead_code, reason = "each test program uses its own part")]

/// xorshift64*: reproducible, and good enough to choose inputs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// Returns a number below `n`, both big-endian.
    pub(crate) fn residue(&mut self, n: &[u8]) -> Vec<u8> {
        loop {
            let candidate: Vec<u8> = n.iter().map(|_| (self.next() >> 56) as u8).collect();
            if candidate.as_slice() < n {
                return candidate;
            }
        }
    }
}
