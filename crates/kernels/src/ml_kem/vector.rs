//! Interface of a 512-bit register for the algorithm.

use crate::keccak::StateWords;

/// Number of operations computed at once: one in each 64-bit lane.
pub(crate) const LANES: usize = 8;

/// Size of a vector in bytes.
pub(crate) const VECTOR_BYTES: usize = 64;

/// Register of 512 bits, as eight *lanes* of 64 bits or as 32 *words* of 16, four to a lane. The lowest bytes come
/// first.
///
/// No method branches on its data or uses it as an address, except [`store_reduced`](Self::store_reduced), which is
/// for public data.
pub(crate) trait Vector: StateWords {
    /// Returns the same 16 bits in every word.
    fn words(word: i16) -> Self;
    fn load(bytes: &[u8; VECTOR_BYTES]) -> Self;
    fn store(self, bytes: &mut [u8; VECTOR_BYTES]);

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;

    /// Shifts every lane to the left by `bits`, which is public.
    fn shift_lanes_left(self, bits: u32) -> Self;
    /// Copies the highest bit of every lane to all of its bits.
    fn signs_of_lanes(self) -> Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// Returns the low halves of the words' products.
    fn times_low(self, other: Self) -> Self;
    /// Returns the high halves of the products of signed words.
    fn times_high(self, other: Self) -> Self;
    /// Returns the high halves of the products of unsigned words.
    fn times_high_unsigned(self, other: Self) -> Self;
    fn shift_left<const N: u32>(self) -> Self;
    fn shift_right<const N: u32>(self) -> Self;
    /// Shifts signed words.
    fn shift_right_signed<const N: u32>(self) -> Self;

    /// Copies the lower four lanes to the upper four.
    fn repeat_lower(self) -> Self;
    /// Copies the upper four lanes to the lower four.
    fn repeat_upper(self) -> Self;
    /// Copies word I of each lane to all four words of the lane.
    fn broadcast_word<const I: usize>(self) -> Self;
    /// Returns the even groups of LEN words of both vectors, alternately, and the odd ones; LEN is 1, 2, 4, 8 or 16.
    fn interleave<const LEN: usize>(self, other: Self) -> [Self; 2];
    /// Transposes the 4x4 words in the same lane of four vectors.
    fn transpose_words(rows: [Self; 4]) -> [Self; 4];
    /// Transposes the 8x8 lanes of eight vectors.
    fn transpose_lanes(rows: [Self; 8]) -> [Self; 8];

    /// Returns words with ones where a bit is set, the lowest bit first.
    fn from_bits(bits: u32) -> Self;
    /// Returns the 32 numbers of four bits in two lanes, the first of which is 2 `i`.
    fn four_bits(self, i: usize) -> Self;
    /// Packs the words, numbers of 4 or 10 bits, to 4 BITS bytes, before others without meaning.
    fn pack<const BITS: u32>(self) -> Self;

    /// Unpacks the first 48 bytes to 32 numbers of 12 bits, one in each word (FIPS 203, `ByteDecode_12`).
    fn unpack_12_bits(bytes: &[u8; VECTOR_BYTES]) -> Self;
    /// Writes those of the first `count` words that are below q, in their order, and returns their number; the data
    /// after them in `to` is overwritten. The words are public.
    fn store_reduced(self, count: usize, to: &mut [u8; VECTOR_BYTES]) -> usize;
}
