//! x = x^d modulo both primes in every lane, by fixed windows.

use super::arithmetic::Arithmetic;
use super::ring::Ring;
use super::{Probe, Stage};
use quadrille_rsa_numbers::words;

/// One exponent a lane, word by word.
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

    /// How many windows cover an exponent.
    fn windows(&self) -> usize {
        (64 * self.words.len() / A::LANES).div_ceil(A::WINDOW)
    }

    /// Window number `window`, counted from the least significant, of every lane.
    fn window(&self, window: usize, out: &mut [u64]) {
        let (index, shift) = (window * A::WINDOW / 64, window * A::WINDOW % 64);
        let crosses = shift + A::WINDOW > 64 && (index + 1) * A::LANES < self.words.len();
        for (lane, out) in out.iter_mut().enumerate() {
            let low = self.words[index * A::LANES + lane] >> shift;
            let high = if crosses { self.words[(index + 1) * A::LANES + lane] << (64 - shift) } else { 0 };
            *out = (low | high) & ((1 << A::WINDOW) - 1);
        }
    }
}

/// x = x^exponent in each ring and lane, in and out of Montgomery form as x is.
///
/// The sequence of operations is the same for all keys of one size: WINDOW squarings and one multiplication a
/// window, the power chosen by reading the whole table. `first` is the first ring's number, for the probe.
pub(super) fn exponentiate<A: Arithmetic>(
    arithmetic: A,
    rings: &mut [Ring<A>],
    exponents: &mut [Exponents<A>],
    first: usize,
    probe: &mut impl Probe<A>,
) {
    build_table(arithmetic, rings);
    probe.on_stage(Stage::TableBuilt, first, rings, exponents);

    let windows = exponents[0].windows();
    select(arithmetic, rings, exponents, windows - 1);
    for ring in rings.iter_mut() {
        ring.x.copy_from_slice(&ring.y);
    }
    for window in (0..windows - 1).rev() {
        for _ in 0..A::WINDOW {
            arithmetic.square(rings);
        }
        select(arithmetic, rings, exponents, window);
        arithmetic.multiply(rings);
        if window == windows / 2 {
            probe.on_stage(Stage::HalfwayThrough, first, rings, exponents);
        }
    }
}

/// table[i] = x^i for i < 2^WINDOW.
fn build_table<A: Arithmetic>(arithmetic: A, rings: &mut [Ring<A>]) {
    for ring in rings.iter_mut() {
        let digits = ring.radix.digits;
        ring.table[..digits].copy_from_slice(&ring.one);
        ring.table[digits..2 * digits].copy_from_slice(&ring.x);
        ring.y.copy_from_slice(&ring.x);
    }
    for power in 2..1 << A::WINDOW {
        arithmetic.multiply(rings);
        for ring in rings.iter_mut() {
            let digits = ring.radix.digits;
            ring.table[power * digits..][..digits].copy_from_slice(&ring.x);
        }
    }
}

/// y = table[window of the exponent] in each ring.
fn select<A: Arithmetic>(arithmetic: A, rings: &mut [Ring<A>], exponents: &[Exponents<A>], window: usize) {
    let mut index = [0; 8];
    let index = &mut index[..A::LANES];
    for (ring, exponents) in rings.iter_mut().zip(exponents) {
        exponents.window(window, index);
        arithmetic.select(ring, index);
    }
    words::wipe(index);
}
