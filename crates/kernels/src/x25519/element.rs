//! Numbers modulo p = 2^255 - 19, one in each lane.

use std::marker::PhantomData;
use zeroize::Zeroize;

/// Number of words of an element, in either layout.
const WORDS: usize = 40;

/// Layout of numbers in vectors: digit i of lane l is word `LANES * i + l`.
pub(crate) trait Layout: Copy + 'static {
    /// Number of lanes.
    const LANES: usize;
    /// Number of digits.
    const DIGITS: usize = WORDS / Self::LANES;
    /// Mask of the significant bits of a word.
    const READ: u64;

    /// First bit of a digit; the last one ends with bit 255.
    fn start(digit: usize) -> usize;
}

/// AVX-512: five digits of 52 bits. Instructions read 52 bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eight;

impl Layout for Eight {
    const LANES: usize = 8;
    const READ: u64 = (1 << 52) - 1;

    fn start(digit: usize) -> usize {
        52 * digit
    }
}

/// AVX2: ten digits of alternately 26 and 25 bits. Instructions read 32.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Four;

impl Layout for Four {
    const LANES: usize = 4;
    const READ: u64 = (1 << 32) - 1;

    fn start(digit: usize) -> usize {
        (51 * digit).div_ceil(2)
    }
}

/// One number in each lane, the lowest digits first. *Clean* digits have no more than their bits (the second of ten
/// has slightly more), in a number below 2^255 + 2^212.
#[repr(C, align(64))]
pub(crate) struct Element<L: Layout>(pub(crate) [u64; WORDS], PhantomData<L>);

impl<L: Layout> Element<L> {
    /// Returns the same small number in every lane.
    pub(super) fn small(number: u64) -> Self {
        let mut element = Self::default();
        element.0[..L::LANES].fill(number);
        element
    }

    /// Sets one lane to a number of 256 bits, its lowest word first.
    pub(super) fn put(&mut self, lane: usize, words: &[u64; 4]) {
        for digit in 0..L::DIGITS {
            let start = L::start(digit);
            let end = if digit + 1 < L::DIGITS { L::start(digit + 1) } else { 256 };
            let (word, shift) = (start / 64, start % 64);
            let above = if shift > 0 && word < 3 { words[word + 1] << (64 - shift) } else { 0 };
            self.0[L::LANES * digit + lane] = (words[word] >> shift | above) & ((1 << (end - start)) - 1);
        }
    }

    /// Returns the number in one lane, reduced; its digits are clean.
    pub(super) fn canonical(&self, lane: usize) -> [u64; 4] {
        // The number is below 2p. Adding 19 reaches bit 255 exactly if it is p or more.
        let (number, _) = self.words(lane);
        let above = plus(&number, 19)[3] >> 63;
        let mut reduced = plus(&number, 19 * above);
        reduced[3] &= u64::MAX >> 1;
        reduced
    }

    /// Returns the number in one lane, and its part above 256 bits.
    pub(super) fn words(&self, lane: usize) -> ([u64; 4], u64) {
        let mut sums = [0u128; 6];
        for digit in 0..L::DIGITS {
            let (word, shift) = (L::start(digit) / 64, L::start(digit) % 64);
            let placed = u128::from(self.0[L::LANES * digit + lane] & L::READ) << shift;
            sums[word] += u128::from(placed as u64);
            sums[word + 1] += placed >> 64;
        }
        let mut carry = 0;
        let words = sums.map(|sum| {
            let sum = sum + carry;
            carry = sum >> 64;
            sum as u64
        });
        ([words[0], words[1], words[2], words[3]], words[4])
    }

    /// Returns all ones in the lanes with a number, in clean digits, that is zero modulo p.
    pub(super) fn zeros(&self) -> [u64; 8] {
        std::array::from_fn(|lane| {
            // Layouts of four lanes check each twice.
            let bits = self.canonical(lane % L::LANES).iter().fold(0, |bits, word| bits | word);
            ((bits | bits.wrapping_neg()) >> 63).wrapping_sub(1)
        })
    }

    /// Sets the marked lanes to a small number.
    pub(super) fn replace(&mut self, marked: &[u64; 8], number: u64) {
        for digits in self.0.chunks_mut(L::LANES) {
            digits.iter_mut().zip(marked).for_each(|(digit, mark)| *digit &= !mark);
        }
        self.0[..L::LANES].iter_mut().zip(marked).for_each(|(digit, mark)| *digit |= number & mark);
    }
}

impl<L: Layout> Clone for Element<L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Layout> Copy for Element<L> {}

impl<L: Layout> Default for Element<L> {
    fn default() -> Self {
        Self([0; WORDS], PhantomData)
    }
}

impl<L: Layout> Zeroize for Element<L> {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// One 64-bit word of every lane, several times: consecutive vectors of an instruction set, with room for eight lanes
/// in each.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Vectors<const N: usize>(pub(crate) [[u64; 8]; N]);

impl<const N: usize> Vectors<N> {
    /// Sets one lane of a vector.
    pub(super) fn put<L: Layout>(&mut self, vector: usize, lane: usize, word: u64) {
        self.0.as_flattened_mut()[L::LANES * vector + lane] = word;
    }

    /// Returns one lane of a vector.
    #[cfg(test)]
    pub(super) fn get<L: Layout>(&self, vector: usize, lane: usize) -> u64 {
        self.0.as_flattened()[L::LANES * vector + lane]
    }
}

impl<const N: usize> Default for Vectors<N> {
    fn default() -> Self {
        Self([[0; 8]; N])
    }
}

impl<const N: usize> Zeroize for Vectors<N> {
    fn zeroize(&mut self) {
        self.0.as_flattened_mut().zeroize();
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
