//! Eight numbers modulo p = 2^255 - 19, one in each lane.

use zeroize::Zeroize;

/// Bits of a digit.
pub(super) const DIGIT_BITS: usize = 52;
pub(super) const DIGIT_MASK: u64 = (1 << DIGIT_BITS) - 1;

/// One 64-bit word of every lane.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct U64x8(pub(crate) [u64; 8]);

impl Zeroize for U64x8 {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Five digits, the lowest first. *Clean* are digits with nothing above their 52 bits, in a number below 2^255 + 2^212.
#[derive(Clone, Copy, Default)]
#[repr(C, align(64))]
pub(crate) struct Element(pub(crate) [U64x8; 5]);

impl Element {
    /// The same small number in every lane.
    pub(super) fn small(number: u64) -> Self {
        let mut element = Self::default();
        element.0[0].0 = [number; 8];
        element
    }

    /// Sets one lane to a number of 256 bits, its lowest word first.
    pub(super) fn put(&mut self, lane: usize, words: &[u64; 4]) {
        let [a, b, c, d] = *words;
        let digits = [a, a >> 52 | b << 12, b >> 40 | c << 24, c >> 28 | d << 36, d >> 16];
        for (vector, digit) in self.0.iter_mut().zip(digits) {
            vector.0[lane] = digit & DIGIT_MASK;
        }
    }

    /// The number in one lane, reduced; its digits are clean.
    pub(super) fn canonical(&self, lane: usize) -> [u64; 4] {
        let [a, b, c, d, e] = self.0.map(|vector| vector.0[lane]);
        let number = [a | b << 52, b >> 12 | c << 40, c >> 24 | d << 28, d >> 36 | e << 16];
        // The number is below 2p. Adding 19 reaches bit 255 exactly if it is p or more.
        let above = plus(&number, 19)[3] >> 63;
        let mut reduced = plus(&number, 19 * above);
        reduced[3] &= u64::MAX >> 1;
        reduced
    }

    /// All ones in the lanes whose number, in clean digits, is zero modulo p.
    pub(super) fn zeros(&self) -> [u64; 8] {
        std::array::from_fn(|lane| {
            let bits = self.canonical(lane).iter().fold(0, |bits, word| bits | word);
            ((bits | bits.wrapping_neg()) >> 63).wrapping_sub(1)
        })
    }

    /// Sets the marked lanes to a small number.
    pub(super) fn replace(&mut self, marked: &[u64; 8], number: u64) {
        for vector in &mut self.0 {
            vector.0.iter_mut().zip(marked).for_each(|(digit, mark)| *digit &= !mark);
        }
        self.0[0].0.iter_mut().zip(marked).for_each(|(digit, mark)| *digit |= number & mark);
    }
}

impl Zeroize for Element {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

fn plus(number: &[u64; 4], small: u64) -> [u64; 4] {
    let mut carry = u128::from(small);
    number.map(|word| {
        let sum = u128::from(word) + carry;
        carry = sum >> 64;
        sum as u64
    })
}
