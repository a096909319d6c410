//! What the algorithm asks of a register of 512 bits.

/// Operations computed at once: one in each 64-bit lane.
pub(crate) const LANES: usize = 8;

/// Bytes of a vector.
pub(crate) const VECTOR_BYTES: usize = 64;

/// A register of 512 bits, as eight *lanes* of 64 bits or as 32 *words* of 16, four to a lane. The lowest bytes come
/// first.
///
/// No method branches on its data or makes an address of it, except [`store_reduced`](Self::store_reduced), which is
/// for public data.
pub(crate) trait Vector: Copy {
    fn zero() -> Self;
    /// The same 64 bits in every lane.
    fn lanes(lane: u64) -> Self;
    /// The same 16 bits in every word.
    fn words(word: i16) -> Self;
    fn load(bytes: &[u8; VECTOR_BYTES]) -> Self;
    fn store(self, bytes: &mut [u8; VECTOR_BYTES]);

    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    /// `self ^ a ^ b`
    fn xor3(self, a: Self, b: Self) -> Self;
    /// `self ^ (!a & b)`, the step chi of Keccak.
    fn chi(self, a: Self, b: Self) -> Self;

    /// Every lane rotated to the left by N bits.
    fn rotate<const N: i32>(self) -> Self;
    /// Every lane shifted to the left by `bits`, which is public.
    fn shift_lanes_left(self, bits: u32) -> Self;
    /// The highest bit of every lane in all of its bits.
    fn signs_of_lanes(self) -> Self;

    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    /// The low halves of the words' products.
    fn times_low(self, other: Self) -> Self;
    /// The high halves of the products of signed words.
    fn times_high(self, other: Self) -> Self;
    /// The high halves of the products of unsigned words.
    fn times_high_unsigned(self, other: Self) -> Self;
    fn shift_left<const N: u32>(self) -> Self;
    fn shift_right<const N: u32>(self) -> Self;
    /// Of signed words.
    fn shift_right_signed<const N: u32>(self) -> Self;

    /// The lower four lanes in place of the upper four too.
    fn repeat_lower(self) -> Self;
    /// The upper four lanes in place of the lower four too.
    fn repeat_upper(self) -> Self;
    /// Word I of each lane in all four words of the lane.
    fn broadcast_word<const I: usize>(self) -> Self;
    /// The 4x4 words in the same lane of four vectors, transposed.
    fn transpose_words(rows: [Self; 4]) -> [Self; 4];
    /// The 8x8 lanes of eight vectors, transposed.
    fn transpose_lanes(rows: [Self; 8]) -> [Self; 8];

    /// The first 48 bytes as 32 numbers of 12 bits, one in each word (FIPS 203, `ByteDecode_12`).
    fn unpack_12_bits(bytes: &[u8; VECTOR_BYTES]) -> Self;
    /// Writes those of the first `count` words that are below q, one after the other and in their order, and returns
    /// how many they are; what follows them in `to` is overwritten. The words are public.
    fn store_reduced(self, count: usize, to: &mut [u8; VECTOR_BYTES]) -> usize;
}
