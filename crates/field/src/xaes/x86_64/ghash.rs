//! GHASH by PCLMULQDQ: POLYVAL on byte-reversed blocks (RFC 8452, appendix A), with one reduction for four blocks.

use super::block::{BLOCK, load};
use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_clmulepi64_si128, _mm_or_si128, _mm_set_epi8, _mm_set_epi64x,
    _mm_setzero_si128, _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_slli_epi64, _mm_slli_si128, _mm_srai_epi32,
    _mm_srli_epi64, _mm_srli_si128, _mm_xor_si128,
};

/// Number of blocks that share one reduction.
const STRIDE: usize = 4;

/// GHASH (SP 800-38D, section 6.4), in POLYVAL's bit order.
pub(super) struct Ghash {
    /// Powers 4, 3, 2, 1 of the hash key.
    powers: [__m128i; STRIDE],
    sum: __m128i,
    waiting: [__m128i; STRIDE],
    count: usize,
}

impl Ghash {
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    pub(super) fn new(hash_key: __m128i) -> Self {
        let one = times_x(reversed(hash_key));
        let two = Product::multiply(one, one).reduced();
        let three = Product::multiply(two, one).reduced();
        let four = Product::multiply(two, two).reduced();
        let zero = _mm_setzero_si128();
        Self { powers: [four, three, two, one], sum: zero, waiting: [zero; STRIDE], count: 0 }
    }

    /// Adds bytes, padded with zeros to a whole block.
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    pub(super) fn update(&mut self, bytes: &[u8]) {
        let (whole, rest) = bytes.as_chunks::<BLOCK>();
        for block in whole {
            self.push(reversed(load(block)));
        }
        if !rest.is_empty() {
            let mut block = [0; BLOCK];
            block[..rest.len()].copy_from_slice(rest);
            self.push(reversed(load(&block)));
        }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn push(&mut self, block: __m128i) {
        self.waiting[self.count] = block;
        self.count += 1;
        if self.count == STRIDE {
            self.fold();
        }
    }

    /// Returns GHASH of all bytes and the block of lengths; arguments in bytes, the block in bits.
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    pub(super) fn finish(mut self, aad: usize, text: usize) -> __m128i {
        let bits = |bytes: usize| (bytes as u64 * 8).cast_signed();
        self.push(_mm_set_epi64x(bits(aad), bits(text)));
        if self.count > 0 {
            self.fold();
        }
        reversed(self.sum)
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn fold(&mut self) {
        self.waiting[0] = _mm_xor_si128(self.waiting[0], self.sum);
        let powers = &self.powers[STRIDE - self.count..];
        let mut product = Product::multiply(self.waiting[0], powers[0]);
        for (block, power) in self.waiting[1..self.count].iter().zip(&powers[1..]) {
            product = product.plus(Product::multiply(*block, *power));
        }
        self.sum = product.reduced();
        self.count = 0;
    }
}

/// Polynomial of 256 bits: low + middle x^64 + high x^128.
struct Product {
    low: __m128i,
    middle: __m128i,
    high: __m128i,
}

impl Product {
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn multiply(a: __m128i, b: __m128i) -> Self {
        Self {
            low: _mm_clmulepi64_si128::<0x00>(a, b),
            middle: _mm_xor_si128(_mm_clmulepi64_si128::<0x01>(a, b), _mm_clmulepi64_si128::<0x10>(a, b)),
            high: _mm_clmulepi64_si128::<0x11>(a, b),
        }
    }

    #[inline]
    #[target_feature(enable = "avx")]
    fn plus(self, other: Self) -> Self {
        Self {
            low: _mm_xor_si128(self.low, other.low),
            middle: _mm_xor_si128(self.middle, other.middle),
            high: _mm_xor_si128(self.high, other.high),
        }
    }

    /// Returns this times x^-128 modulo x^128 + x^127 + x^126 + x^121 + 1: twice, the lowest 64 bits are cleared by
    /// adding that multiple of the modulus, and the rest is divided by x^64.
    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn reduced(self) -> __m128i {
        let modulus = _mm_set_epi64x(0, 0xc200_0000_0000_0000_u64.cast_signed());
        let mut low = _mm_xor_si128(self.low, _mm_slli_si128::<8>(self.middle));
        let high = _mm_xor_si128(self.high, _mm_srli_si128::<8>(self.middle));
        for _ in 0..2 {
            let multiple = _mm_clmulepi64_si128::<0x00>(low, modulus);
            low = _mm_xor_si128(_mm_shuffle_epi32::<0b0100_1110>(low), multiple);
        }
        _mm_xor_si128(high, low)
    }
}

/// mulX_POLYVAL of RFC 8452, appendix A.
#[inline]
#[target_feature(enable = "avx")]
fn times_x(a: __m128i) -> __m128i {
    let modulus = _mm_set_epi64x(0xc200_0000_0000_0000_u64.cast_signed(), 1);
    let top_bit = _mm_shuffle_epi32::<0xff>(_mm_srai_epi32::<31>(a));
    let carried = _mm_slli_si128::<8>(_mm_srli_epi64::<63>(a));
    let doubled = _mm_or_si128(_mm_slli_epi64::<1>(a), carried);
    _mm_xor_si128(doubled, _mm_and_si128(top_bit, modulus))
}

#[inline]
#[target_feature(enable = "avx")]
fn reversed(block: __m128i) -> __m128i {
    _mm_shuffle_epi8(block, _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15))
}
