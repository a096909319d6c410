//! Exponents of a ring's lanes.

use super::arithmetic::Arithmetic;
use quadrille_rsa_numbers::words;

/// One exponent per lane, word by word.
pub(crate) struct Exponents<A: Arithmetic> {
    /// `words[i * LANES + lane]` is word i of the lane's exponent.
    words: Vec<u64>,
    lanes: std::marker::PhantomData<A>,
}

impl<A: Arithmetic> Exponents<A> {
    pub(crate) fn new(len: usize) -> Self {
        Self { words: vec![0; len * A::LANES], lanes: std::marker::PhantomData }
    }

    pub(crate) fn load(&mut self, lane: usize, exponent: &[u64]) {
        for (i, &word) in exponent.iter().enumerate() {
            self.words[i * A::LANES + lane] = word;
        }
    }

    pub(crate) fn wipe(&mut self) {
        words::wipe(&mut self.words);
    }

    #[cfg(test)]
    pub(crate) fn is_clear(&self) -> bool {
        self.words.iter().all(|&word| word == 0)
    }

    /// Flips one bit, for the fault tests.
    #[cfg(test)]
    pub(crate) fn flip(&mut self, lane: usize, bit: usize) {
        self.words[bit / 64 * A::LANES + lane] ^= 1 << (bit % 64);
    }

    /// Number of windows of an exponent.
    pub(super) fn windows(&self) -> usize {
        (64 * self.words.len() / A::LANES).div_ceil(A::WINDOW)
    }

    /// Returns window number `window`, counted from the least significant, of every lane.
    pub(super) fn window(&self, window: usize, out: &mut [u64]) {
        let (index, shift) = (window * A::WINDOW / 64, window * A::WINDOW % 64);
        let crosses = shift + A::WINDOW > 64 && (index + 1) * A::LANES < self.words.len();
        for (lane, out) in out.iter_mut().enumerate() {
            let low = self.words[index * A::LANES + lane] >> shift;
            let high = if crosses { self.words[(index + 1) * A::LANES + lane] << (64 - shift) } else { 0 };
            *out = (low | high) & ((1 << A::WINDOW) - 1);
        }
    }
}
