//! Vectors of ML-DSA on AVX2, in two registers each.

use super::ml_dsa::kernel_functions;
use crate::cpu::HaveAvx2Fma;
use crate::keccak::StateWords;
use crate::ml_dsa::{
    Block, Bytes, Challenge, Gamma2, Kernels, Matrix, Packed, Polynomial, Q, Q_INVERSE, STATES, Small, State,
    StateVector, Vector, algorithm,
};
use std::arch::asm;
use std::arch::x86_64::*;

/// AVX2.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx2(HaveAvx2Fma);

impl Avx2 {
    pub(crate) fn new(proof: HaveAvx2Fma) -> Self {
        Self(proof)
    }
}

impl Kernels for Avx2 {
    type Vector = Pair;
    type States = Four;

    kernel_functions! { "avx2", Pair, Four }

    fn wipe_registers(self) {
        // SAFETY: `self` proves the instructions, and the registers are named as clobbered.
        unsafe {
            asm!(
                "vzeroall",
                out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
                out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
                out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
                options(nomem, nostack, preserves_flags),
            );
        }
    }
}

/// Two registers. Only code called by an [`Avx2`] creates and uses them, so the instructions are available.
#[derive(Clone, Copy)]
pub(crate) struct Pair(__m256i, __m256i);

/// Permutations of bytes to words, counted within 16 bytes: four for each number, from its first one.
const FOUR_BYTES_EACH_18: [u8; 32] = four_bytes_each(18);
const FOUR_BYTES_EACH_20: [u8; 32] = four_bytes_each(20);

const fn four_bytes_each(bits: usize) -> [u8; 32] {
    let (mut from, mut i) = ([0; 32], 0);
    while i < 32 {
        from[i] = (bits * (i / 4 % 4) / 8 + i % 4) as u8;
        i += 1;
    }
    from
}

/// Returns the value of an intrinsic.
macro_rules! intrinsic {
    ($intrinsic:expr) => {
        // SAFETY: called by an `Avx2`, so the instruction exists. Memory that is read or written has the length of a
        // register.
        unsafe { $intrinsic }
    };
}

/// Computes the function of each register of one or two pairs.
macro_rules! each {
    ($function:ident, $a:expr) => {
        Pair(intrinsic!($function($a.0)), intrinsic!($function($a.1)))
    };
    ($function:ident, $a:expr, $b:expr) => {
        Pair(intrinsic!($function($a.0, $b.0)), intrinsic!($function($a.1, $b.1)))
    };
}

impl Vector for Pair {
    #[inline(always)]
    fn words(word: i32) -> Self {
        let register = intrinsic!(_mm256_set1_epi32(word));
        Self(register, register)
    }

    #[inline(always)]
    fn load(block: &Block) -> Self {
        let (low, high) = block.0.split_at(8);
        Self(
            intrinsic!(_mm256_loadu_si256(low.as_ptr().cast())),
            intrinsic!(_mm256_loadu_si256(high.as_ptr().cast())),
        )
    }

    #[inline(always)]
    fn store(self, block: &mut Block) {
        let (low, high) = block.0.split_at_mut(8);
        intrinsic!(_mm256_storeu_si256(low.as_mut_ptr().cast(), self.0));
        intrinsic!(_mm256_storeu_si256(high.as_mut_ptr().cast(), self.1));
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        each!(_mm256_add_epi32, self, other)
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        each!(_mm256_sub_epi32, self, other)
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        each!(_mm256_and_si256, self, other)
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        each!(_mm256_or_si256, self, other)
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        each!(_mm256_xor_si256, self, other)
    }

    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        each!(_mm256_mullo_epi32, self, other)
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        // The compiler makes a constant shift of it.
        let bits = intrinsic!(_mm_cvtsi32_si128(N as i32));
        Self(intrinsic!(_mm256_sra_epi32(self.0, bits)), intrinsic!(_mm256_sra_epi32(self.1, bits)))
    }

    #[inline(always)]
    fn absolute(self) -> Self {
        each!(_mm256_abs_epi32, self)
    }

    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        each!(_mm256_max_epi32, self, other)
    }

    #[inline(always)]
    fn largest(self) -> i32 {
        intrinsic!({
            let eight = _mm256_max_epi32(self.0, self.1);
            let four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256::<1>(eight));
            let two = _mm_max_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
            _mm_cvtsi128_si32(_mm_max_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two)))
        })
    }

    #[inline(always)]
    fn times(self, b: Self, b_times_q_inverse: Self) -> Self {
        let (q, multiples) = (Self::words(Q), self.times_low(b_times_q_inverse));
        let even = each!(_mm256_mul_epi32, self, b);
        let odd = each!(_mm256_mul_epi32, self.odd_words(), b.odd_words());
        let even_multiples = each!(_mm256_mul_epi32, multiples, q);
        let odd_multiples = each!(_mm256_mul_epi32, multiples.odd_words(), q);
        even.odd_words_and(odd).minus(even_multiples.odd_words_and(odd_multiples))
    }

    #[inline(always)]
    fn add_products([even, odd]: [Self; 2], a: Self, b: Self) -> [Self; 2] {
        let even_products = each!(_mm256_mul_epi32, a, b);
        let odd_products = each!(_mm256_mul_epi32, a.odd_words(), b.odd_words());
        [each!(_mm256_add_epi64, even, even_products), each!(_mm256_add_epi64, odd, odd_products)]
    }

    #[inline(always)]
    fn reduce([even, odd]: [Self; 2]) -> Self {
        let (q, q_inverse) = (Self::words(Q), Self::words(Q_INVERSE));
        let even_multiples = each!(_mm256_mul_epi32, even.times_low(q_inverse), q);
        let odd_multiples = each!(_mm256_mul_epi32, odd.times_low(q_inverse), q);
        even.odd_words_and(odd).minus(even_multiples.odd_words_and(odd_multiples))
    }

    #[inline(always)]
    fn transpose(rows: [Self; 16]) -> [Self; 16] {
        let mut columns = [Self::words(0); 16];
        for half in 0..2 {
            let (mut low, mut high) = ([rows[0].0; 8], [rows[0].1; 8]);
            for i in 0..8 {
                (low[i], high[i]) = (rows[8 * half + i].0, rows[8 * half + i].1);
            }
            let (low, high) = (transpose_eight(low), transpose_eight(high));
            for i in 0..8 {
                if half == 0 {
                    (columns[i].0, columns[8 + i].0) = (low[i], high[i]);
                } else {
                    (columns[i].1, columns[8 + i].1) = (low[i], high[i]);
                }
            }
        }
        columns
    }

    #[inline(always)]
    fn unpack_18_bits(bytes: &[u8; 64]) -> Self {
        let shifts = intrinsic!(_mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6));
        Self::unpack::<9>(bytes, &FOUR_BYTES_EACH_18, shifts, (1 << 18) - 1)
    }

    #[inline(always)]
    fn unpack_20_bits(bytes: &[u8; 64]) -> Self {
        let shifts = intrinsic!(_mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4));
        Self::unpack::<10>(bytes, &FOUR_BYTES_EACH_20, shifts, (1 << 20) - 1)
    }

    #[inline(always)]
    fn from_bytes(bytes: &[i8; 16]) -> Self {
        let (low, high) = bytes.split_at(8);
        Self(
            intrinsic!(_mm256_cvtepi8_epi32(_mm_loadl_epi64(low.as_ptr().cast()))),
            intrinsic!(_mm256_cvtepi8_epi32(_mm_loadl_epi64(high.as_ptr().cast()))),
        )
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let low = self.and(Self::words(0xff));
        intrinsic!({
            let halves = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low.0, low.1));
            let (first, second) = (_mm256_castsi256_si128(halves), _mm256_extracti128_si256::<1>(halves));
            _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm_packus_epi16(first, second));
        });
        bytes
    }

    #[inline(always)]
    fn load_bytes(bytes: &[i8; 64]) -> Self {
        let (low, high) = bytes.split_at(32);
        Self(
            intrinsic!(_mm256_loadu_si256(low.as_ptr().cast())),
            intrinsic!(_mm256_loadu_si256(high.as_ptr().cast())),
        )
    }

    #[inline(always)]
    fn store_bytes(self, bytes: &mut [i8; 64]) {
        let (low, high) = bytes.split_at_mut(32);
        intrinsic!(_mm256_storeu_si256(low.as_mut_ptr().cast(), self.0));
        intrinsic!(_mm256_storeu_si256(high.as_mut_ptr().cast(), self.1));
    }

    #[inline(always)]
    fn plus_bytes(self, other: Self) -> Self {
        each!(_mm256_add_epi8, self, other)
    }
}

impl Pair {
    /// Moves the odd words to the even ones.
    #[inline(always)]
    fn odd_words(self) -> Self {
        Self(intrinsic!(_mm256_srli_epi64::<32>(self.0)), intrinsic!(_mm256_srli_epi64::<32>(self.1)))
    }

    /// Returns the odd words as even ones, with the odd words of `odd`.
    #[inline(always)]
    fn odd_words_and(self, odd: Self) -> Self {
        let even = self.odd_words();
        Self(
            intrinsic!(_mm256_blend_epi32::<0b1010_1010>(even.0, odd.0)),
            intrinsic!(_mm256_blend_epi32::<0b1010_1010>(even.1, odd.1)),
        )
    }

    /// Unpacks numbers of which four take QUARTER bytes.
    #[inline(always)]
    fn unpack<const QUARTER: usize>(bytes: &[u8; 64], from: &[u8; 32], shifts: __m256i, mask: i32) -> Self {
        let from = intrinsic!(_mm256_loadu_si256(from.as_ptr().cast()));
        let pair = Self(
            two_quarters(&bytes[..QUARTER + 16], QUARTER),
            two_quarters(&bytes[2 * QUARTER..][..QUARTER + 16], QUARTER),
        );
        let words = each!(_mm256_shuffle_epi8, pair, Self(from, from));
        each!(_mm256_srlv_epi32, words, Self(shifts, shifts)).and(Self::words(mask))
    }
}

/// Loads 16 bytes from the start, and the last 16.
#[inline(always)]
fn two_quarters(bytes: &[u8], second: usize) -> __m256i {
    let (first, second) = (&bytes[..16], &bytes[second..][..16]);
    intrinsic!(_mm256_loadu2_m128i(second.as_ptr().cast(), first.as_ptr().cast()))
}

/// Transposes 8 x 8 words.
#[inline(always)]
fn transpose_eight([a, b, c, d, e, f, g, h]: [__m256i; 8]) -> [__m256i; 8] {
    let (abcd, efgh) = (transpose_halves([a, b, c, d]), transpose_halves([e, f, g, h]));
    let mut columns = [a; 8];
    for i in 0..4 {
        columns[i] = intrinsic!(_mm256_permute2x128_si256::<0x20>(abcd[i], efgh[i]));
        columns[4 + i] = intrinsic!(_mm256_permute2x128_si256::<0x31>(abcd[i], efgh[i]));
    }
    columns
}

/// Transposes the 4 x 4 words in the same half of four registers.
#[inline(always)]
fn transpose_halves([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    intrinsic!({
        let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
        [
            _mm256_unpacklo_epi64(ab, cd),
            _mm256_unpackhi_epi64(ab, cd),
            _mm256_unpacklo_epi64(ab_high, cd_high),
            _mm256_unpackhi_epi64(ab_high, cd_high),
        ]
    })
}

/// Words of four Keccak states, in a register.
#[derive(Clone, Copy)]
pub(crate) struct Four(__m256i);

impl StateWords for Four {
    #[inline(always)]
    fn zero() -> Self {
        Self(intrinsic!(_mm256_setzero_si256()))
    }

    #[inline(always)]
    fn lanes(lane: u64) -> Self {
        Self(intrinsic!(_mm256_set1_epi64x(lane as i64)))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        Self(intrinsic!(_mm256_xor_si256(self.0, other.0)))
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }

    #[inline(always)]
    fn chi(self, a: Self, b: Self) -> Self {
        Self(intrinsic!(_mm256_xor_si256(self.0, _mm256_andnot_si256(a.0, b.0))))
    }

    #[inline(always)]
    fn rotate<const N: i32>(self) -> Self {
        // The compiler makes constant shifts of these.
        intrinsic!({
            let left = _mm256_sll_epi64(self.0, _mm_cvtsi32_si128(N));
            let right = _mm256_srl_epi64(self.0, _mm_cvtsi32_si128(64 - N));
            Self(_mm256_or_si256(left, right))
        })
    }
}

impl StateVector for Four {
    const LANES: usize = 4;

    #[inline(always)]
    fn load(words: &[u64; STATES], first: usize) -> Self {
        let words = &words[first..][..4];
        Self(intrinsic!(_mm256_loadu_si256(words.as_ptr().cast())))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; STATES], first: usize) {
        let words = &mut words[first..][..4];
        intrinsic!(_mm256_storeu_si256(words.as_mut_ptr().cast(), self.0));
    }

    #[inline(always)]
    fn transpose(words: &[[u64; STATES]; 8], to: &mut [[u64; 8]; STATES]) {
        for half in 0..2 {
            for first in [0, 4] {
                let rows = &words[4 * half..][..4];
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| &rows[i]);
                let columns = transpose_four([
                    Self::load(a, first).0,
                    Self::load(b, first).0,
                    Self::load(c, first).0,
                    Self::load(d, first).0,
                ]);
                for (column, to) in columns.into_iter().zip(&mut to[first..]) {
                    Self(column).store(to, 4 * half);
                }
            }
        }
    }
}

/// Transposes 4 x 4 words of 64 bits.
#[inline(always)]
fn transpose_four([a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
    intrinsic!({
        let (ab, cd) = (_mm256_unpacklo_epi64(a, b), _mm256_unpacklo_epi64(c, d));
        let (ab_high, cd_high) = (_mm256_unpackhi_epi64(a, b), _mm256_unpackhi_epi64(c, d));
        [
            _mm256_permute2x128_si256::<0x20>(ab, cd),
            _mm256_permute2x128_si256::<0x20>(ab_high, cd_high),
            _mm256_permute2x128_si256::<0x31>(ab, cd),
            _mm256_permute2x128_si256::<0x31>(ab_high, cd_high),
        ]
    })
}
