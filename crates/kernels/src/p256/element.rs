//! Eight numbers modulo p or n, one in each lane.

use super::modulus::{Modulus, Number, is_zero, select, subtract};
use zeroize::Zeroize;

pub(super) const DIGIT_MASK: u64 = (1 << 52) - 1;

/// One 64-bit word of every lane.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct U64x8(pub(crate) [u64; 8]);

impl Zeroize for U64x8 {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Five digits of 52 bits, the lowest first; the bits above them are zero.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Element(pub(crate) [U64x8; 5]);

impl Element {
    /// Returns the same number in every lane.
    pub(super) fn broadcast(number: &Number) -> Self {
        Self(digits(number).map(|digit| U64x8([digit; 8])))
    }

    /// Returns a vector with a number in each lane.
    pub(super) fn of(numbers: &[Number; 8]) -> Self {
        let mut element = Self::default();
        numbers.iter().enumerate().for_each(|(lane, number)| element.put(lane, number));
        element
    }

    /// Sets one lane.
    pub(super) fn put(&mut self, lane: usize, number: &Number) {
        self.0.iter_mut().zip(digits(number)).for_each(|(vector, digit)| vector.0[lane] = digit);
    }

    /// Returns the number in one lane, modulo the prime, if it is below four times the prime.
    pub(super) fn canonical(&self, lane: usize, modulus: &Modulus) -> Number {
        let [a, b, c, d, e] = self.0.map(|vector| vector.0[lane]);
        let number = [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16];
        let (mut number, mut above) = (number, e >> 48);
        for _ in 0..3 {
            let (less, borrow) = subtract(&number, &modulus.words);
            // Less than the prime, if there is no higher word to borrow from.
            let keep = borrow & is_zero(&[above]);
            number = select(keep, &number, &less);
            above = above.wrapping_add(borrow & !keep);
        }
        number
    }

    /// Returns the numbers in all lanes.
    pub(super) fn all_canonical(&self, modulus: &Modulus) -> [Number; 8] {
        std::array::from_fn(|lane| self.canonical(lane, modulus))
    }

    /// Returns the sum, not reduced.
    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut carries = [0; 8];
        let mut sum = *self;
        for (sum, other) in sum.0.iter_mut().zip(&other.0) {
            for ((digit, other), carry) in sum.0.iter_mut().zip(&other.0).zip(&mut carries) {
                *digit += other + *carry;
                *carry = *digit >> 52;
                *digit &= DIGIT_MASK;
            }
        }
        sum
    }

    /// Sets the marked lanes to a number.
    pub(super) fn replace(&mut self, marked: &[u64; 8], number: &Number) {
        for (vector, digit) in self.0.iter_mut().zip(digits(number)) {
            vector.0.iter_mut().zip(marked).for_each(|(word, mark)| *word = *word & !mark | digit & mark);
        }
    }

    /// Returns a copy with lane i + `by` in lane i.
    pub(super) fn rotated(&self, by: usize) -> Self {
        let mut rotated = *self;
        rotated.0.iter_mut().for_each(|vector| vector.0.rotate_left(by));
        rotated
    }
}

impl Zeroize for Element {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

fn digits(number: &Number) -> [u64; 5] {
    let [a, b, c, d] = *number;
    let digits = [a, a >> 52 | b << 12, b >> 40 | c << 24, c >> 28 | d << 36, d >> 16];
    digits.map(|digit| digit & DIGIT_MASK)
}
