//! Interface of 16 coefficients in registers, and of Keccak states in lanes.

use super::polynomial::Block;
use crate::keccak::StateWords;

/// Number of Keccak states.
pub(crate) const STATES: usize = 8;

/// Sixteen *words* of 32 bits, signed.
///
/// No method branches on its data or uses it as an address.
pub(crate) trait Vector: Copy {
    /// Returns the same number in every word.
    fn words(word: i32) -> Self;
    fn load(block: &Block) -> Self;
    fn store(self, block: &mut Block);

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// Returns the low halves of the words' products.
    fn times_low(self, other: Self) -> Self;
    /// Shifts signed words.
    fn shift_right<const N: u32>(self) -> Self;
    fn absolute(self) -> Self;
    fn maximum(self, other: Self) -> Self;
    /// Returns the largest word.
    fn largest(self) -> i32;

    /// Computes a b / 2^32 modulo q for a factor b and its product with 1 / q (Montgomery): below |a b| / 2^32 + q / 2
    /// in absolute value.
    fn times(self, b: Self, b_times_q_inverse: Self) -> Self;
    /// Adds the products of the words, of 64 bits each, to sums: those of even words and those of odd ones.
    fn add_products(sums: [Self; 2], a: Self, b: Self) -> [Self; 2];
    /// Returns sums of products, divided by 2^32 modulo q: below |sum| / 2^32 + q / 2 in absolute value.
    fn reduce(sums: [Self; 2]) -> Self;

    /// Transposes 16 x 16 words.
    fn transpose(rows: [Self; 16]) -> [Self; 16];
    /// Unpacks 16 numbers of 18 bits, of the first 36 bytes.
    fn unpack_18_bits(bytes: &[u8; 64]) -> Self;
    /// Unpacks 16 numbers of 20 bits, of the first 40 bytes.
    fn unpack_20_bits(bytes: &[u8; 64]) -> Self;
    /// Extends 16 signed bytes to words.
    fn from_bytes(bytes: &[i8; 16]) -> Self;
    /// Returns the lowest byte of every word.
    fn to_bytes(self) -> [u8; 16];

    fn load_bytes(bytes: &[i8; 64]) -> Self;
    fn store_bytes(self, bytes: &mut [i8; 64]);
    /// Adds bytes.
    fn plus_bytes(self, other: Self) -> Self;
}

/// Words of some of eight Keccak states.
pub(crate) trait StateVector: StateWords {
    /// Number of states.
    const LANES: usize;
    /// Loads the words of the states from `first` on.
    fn load(words: &[u64; STATES], first: usize) -> Self;
    fn store(self, words: &mut [u64; STATES], first: usize);
    /// Transposes words of eight states.
    fn transpose(words: &[[u64; STATES]; 8], to: &mut [[u64; 8]; STATES]);
}
