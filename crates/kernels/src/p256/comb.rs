//! Fixed-base comb: eight multiples of the base point as sums of table entries.

use super::element::{Element, U64x8};
use super::modulus::{N, Number, opaque, select};
use zeroize::Zeroize;

/// Bits of a window; as in `codegen/p256.rs`.
pub(crate) const WINDOW_BITS: usize = 6;
/// Number of windows of a scalar.
pub(crate) const WINDOWS: usize = 256usize.div_ceil(WINDOW_BITS);
/// Number of quadwords of the table of one window: for five digits of x, five of y, and the tag.
pub(crate) const TABLE: usize = 11 << (WINDOW_BITS - 1);

/// Arithmetic supplied by an instruction set; `codegen/p256.rs` describes the functions.
pub(crate) trait Kernels: Copy {
    /// Computes a * b / 2^260 mod p, in clean digits.
    fn multiply(self, a: &Element, b: &Element) -> Element;
    /// Computes a * b / 2^260 mod n, in clean digits.
    fn multiply_modulo_n(self, a: &Element, b: &Element) -> Element;
    /// Sets the sum to the entries of the first window.
    fn comb_begin(self, state: &mut CombState, digits: &U64x8);
    /// Adds the entries of the windows from `first` on.
    fn comb_add(self, state: &mut CombState, digits: &[U64x8], first: usize);
    /// Clears the registers.
    fn wipe_registers(self);
}

/// State of the comb: x, y and z of the sum as x / z^2, y / z^3; z^2; the sum of tags; and temporaries.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct CombState(pub(crate) [Element; 18]);

impl CombState {
    /// Returns the sum of the tags of a lane's entries, modulo 2^64.
    pub(super) fn tags(&self, lane: usize) -> u64 {
        self.0[4].0[0].0[lane]
    }
}

impl Zeroize for CombState {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

/// Returns the odd one of k and n - k, which have multiples of the base point with the same x-coordinate.
pub(super) fn odd(k: &Number) -> Number {
    select((k[0] & 1).wrapping_neg(), k, &N.minus(k))
}

/// Recodes an odd number to signed digits. It is the sum of 2^i or -2^i for each i up to any: the positive ones are
/// given by the bits of half the number, and the highest. Each window therefore has an odd digit, stored as bits for
/// the kernels, the lowest window's first.
pub(super) fn put_digits<const BITS: usize>(digits: &mut [U64x8], lane: usize, odd: &Number) {
    let [a, b, c, d] = *odd;
    let mut bits = [a >> 1 | b << 63, b >> 1 | c << 63, c >> 1 | d << 63, d >> 1, 0, 0];
    let top = BITS * digits.len() - 1;
    bits[top / 64] |= 1 << (top % 64);
    for (i, vector) in digits.iter_mut().enumerate() {
        let (word, shift) = (BITS * i / 64, BITS * i % 64);
        let window = bits[word] >> shift | bits[word + 1] << 1 << (63 - shift);
        vector.0[lane] = window & ((1 << BITS) - 1);
    }
}

/// Returns all ones if the tags of the entries sum to the number modulo 2^56 - 5, as they do for the right entries.
pub(super) fn tags_agree(tags: u64, odd: &Number) -> u64 {
    const BITS: usize = 56;
    const MASK: u64 = (1 << BITS) - 1;
    const MODULUS: u64 = MASK - 4;
    // 2^56 = 5
    let fold = |number: u128| (number as u64 & MASK) + 5 * (number >> BITS) as u64;
    let [a, b, c, d] = *odd;
    let digits =
        [a, a >> 56 | b << 8, b >> 48 | c << 16, c >> 40 | d << 24, d >> 32].map(|digit| digit & MASK);
    let number = digits.iter().rev().fold(0, |sum, digit| fold(5 * u128::from(sum) + u128::from(*digit)));
    // The tags are below 2^56 and fewer than 64, up to half of them negative.
    let tags = tags.wrapping_add(MODULUS << 6);
    let canonical = |number: u64| {
        let folded = fold(fold(number.into()).into());
        let less = folded.wrapping_sub(MODULUS);
        let keep = opaque(((less as i64) >> 63) as u64);
        folded & keep | less & !keep
    };
    super::modulus::is_zero(&[canonical(number) ^ canonical(tags)])
}
