//! The challenge c, a polynomial with few coefficients that are not zero, and its products with small polynomials.
//!
//! The positions in c are used as addresses: c is public (`docs/kernels/ml-dsa.md`).

use super::packing::odd_bytes;
use super::polynomial::{N, Polynomial};
use super::rounding::Bytes;
use super::vector::Vector;

/// Room for the most terms.
const TERMS: usize = 64;
/// Copies of a small polynomial.
const COPIES: usize = 3;
/// Mark of the coefficient 1.
const PLUS: u8 = 1;

/// Challenge, as the starts of windows of a [`Small`], one for each term.
#[derive(Clone, Copy)]
pub(crate) struct Challenge {
    starts: [u16; TERMS],
    terms: usize,
}

impl Challenge {
    pub(crate) const NONE: Self = Self { starts: [0; TERMS], terms: 0 };

    fn new(coefficients: &Bytes) -> Self {
        let mut challenge = Self::NONE;
        for position in odd_bytes(coefficients) {
            let copy = if coefficients[position] == PLUS { N } else { 2 * N };
            challenge.starts[challenge.terms % TERMS] = (copy - position) as u16;
            challenge.terms += 1;
        }
        challenge
    }

    /// Returns c with its coefficients.
    pub(crate) fn polynomial(&self) -> Polynomial {
        let mut polynomial = Polynomial::ZERO;
        for start in self.starts[..self.terms].iter().map(|start| usize::from(*start)) {
            if start > N {
                polynomial.set(2 * N - start, -1);
            } else {
                polynomial.set(N - start, 1);
            }
        }
        polynomial
    }
}

/// `SampleInBall` (FIPS 204, algorithm 29), over blocks of a hash as they are computed.
pub(crate) struct Sampler {
    /// Coefficients as bytes: 0, [`PLUS`] or, two higher, its negative.
    coefficients: Bytes,
    signs: u64,
    /// Index of the next coefficient.
    next: usize,
}

impl Sampler {
    /// Begins with the first block, and samples from it.
    pub(crate) fn new(tau: usize, block: &[u8]) -> Self {
        let (signs, rest) = block.split_first_chunk().expect("a block begins with the signs");
        let mut sampler = Self { coefficients: [0; N], signs: u64::from_le_bytes(*signs), next: N - tau };
        sampler.sample(rest);
        sampler
    }

    /// Continues with more bytes.
    pub(crate) fn sample(&mut self, bytes: &[u8]) {
        for position in bytes.iter().map(|byte| usize::from(*byte)) {
            if self.next == N {
                return;
            }
            if position <= self.next {
                self.coefficients[self.next] = self.coefficients[position];
                self.coefficients[position] = PLUS + 2 * (self.signs & 1) as u8;
                self.signs >>= 1;
                self.next += 1;
            }
        }
    }

    /// Returns the challenge, unless more bytes are required.
    pub(crate) fn finish(&self) -> Option<Challenge> {
        (self.next == N).then(|| Challenge::new(&self.coefficients))
    }
}

/// Polynomial with coefficients from -4 to 4, in three copies with alternating signs: -s, s, -s. The product of s with
/// a power of x modulo x^256 + 1, or with a negative one, is a window of 256 bytes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Small([i8; COPIES * N]);

impl Small {
    pub(crate) const ZERO: Self = Self([0; COPIES * N]);

    /// Creates one from a polynomial with small coefficients.
    pub(crate) fn new(polynomial: &Polynomial) -> Self {
        let mut small = Self::ZERO;
        for (i, coefficient) in polynomial.coefficients().enumerate() {
            small.0[i] = -coefficient as i8;
            small.0[N + i] = coefficient as i8;
            small.0[2 * N + i] = -coefficient as i8;
        }
        small
    }
}

impl Small {
    /// Returns the coefficients, from the second copy.
    pub(super) fn coefficients(&self) -> impl Iterator<Item = i32> + '_ {
        self.0[N..2 * N].iter().map(|coefficient| i32::from(*coefficient))
    }
}

#[cfg(test)]
impl Small {
    /// Flips a bit of each of the given bytes.
    pub(super) fn flip(&mut self, bytes: &[usize]) {
        bytes.iter().for_each(|at| self.0[*at] ^= 1);
    }
}

/// Adds the product of the challenge and a small polynomial to `base`, and returns the sum's largest absolute value. At
/// most `byte_terms` terms are added as bytes, and all in two such parts.
#[inline(always)]
pub(crate) fn add_small_product<V: Vector>(
    small: &Small,
    challenge: &Challenge,
    byte_terms: usize,
    base: &Polynomial,
    sum: &mut Polynomial,
) -> i32 {
    let (first, second) = challenge.starts[..challenge.terms].split_at(challenge.terms.min(byte_terms));
    let (mut product, mut more) = ([[0; 64]; 4], [[0; 64]; 4]);
    add_windows::<V>(small, first, &mut product);
    if !second.is_empty() {
        add_windows::<V>(small, second, &mut more);
    }
    let mut largest = V::words(0);
    for (i, (base, sum)) in base.0.iter().zip(&mut sum.0).enumerate() {
        let mut x = V::load(base).plus(V::from_bytes(&product[i / 4].as_chunks().0[i % 4]));
        if !second.is_empty() {
            x = x.plus(V::from_bytes(&more[i / 4].as_chunks().0[i % 4]));
        }
        x.store(sum);
        largest = largest.maximum(x.absolute());
    }
    largest.largest()
}

/// Computes the sum of windows of a small polynomial.
#[inline(always)]
fn add_windows<V: Vector>(small: &Small, starts: &[u16], product: &mut [[i8; 64]; 4]) {
    let mut sums = [V::words(0); 4];
    for start in starts {
        let window: &[i8; N] = small.0[usize::from(*start)..].first_chunk().expect("starts are at most 512");
        let [a, b, c, d] = window.as_chunks::<64>().0 else { unreachable!("256 bytes") };
        sums = [
            sums[0].plus_bytes(V::load_bytes(a)),
            sums[1].plus_bytes(V::load_bytes(b)),
            sums[2].plus_bytes(V::load_bytes(c)),
            sums[3].plus_bytes(V::load_bytes(d)),
        ];
    }
    for (sums, product) in sums.into_iter().zip(product) {
        sums.store_bytes(product);
    }
}
