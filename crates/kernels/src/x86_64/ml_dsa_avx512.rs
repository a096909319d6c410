//! Vectors of ML-DSA on AVX-512.

use super::avx512::{Avx512, Zmm, wipe_registers};
use super::ml_dsa::kernel_functions;
use crate::ml_dsa::{
    Block, Bytes, Challenge, Gamma2, Kernels, Matrix, Packed, Polynomial, Q, Q_INVERSE, STATES, Small, State,
    StateVector, Vector, algorithm,
};
use crate::ml_kem;
use std::arch::x86_64::*;

impl Kernels for Avx512 {
    type Vector = Zmm;
    type States = Zmm;

    kernel_functions! { "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt", Zmm, Zmm }

    fn wipe_registers(self) {
        wipe_registers(self);
    }
}

/// Masks of the even and the odd words.
const EVEN: u16 = 0x5555;

/// Permutation of bytes to words: four for each number of BITS bits, from its first one.
const fn four_bytes_each(bits: usize) -> [u8; 64] {
    let (mut from, mut i) = ([0; 64], 0);
    while i < 64 {
        from[i] = (bits * (i / 4) / 8 + i % 4) as u8;
        i += 1;
    }
    from
}

/// Distances of numbers of some bits from the start of their first byte.
const fn shifts(bits: usize) -> Block {
    let (mut shifts, mut i) = (Block([0; 16]), 0);
    while i < 16 {
        shifts.0[i] = (bits * i % 8) as i32;
        i += 1;
    }
    shifts
}

/// Wraps the register that an intrinsic returns.
macro_rules! register {
    ($intrinsic:expr) => {
        // SAFETY: called by an `Avx512`, so the instruction exists. Memory that is read has the length of a register.
        Zmm(unsafe { $intrinsic })
    };
}

impl Vector for Zmm {
    #[inline(always)]
    fn words(word: i32) -> Self {
        register!(_mm512_set1_epi32(word))
    }

    #[inline(always)]
    fn load(block: &Block) -> Self {
        register!(_mm512_loadu_si512(block.0.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, block: &mut Block) {
        // SAFETY: as in `register`, and a block has the length of a register.
        unsafe { _mm512_storeu_si512(block.0.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        register!(_mm512_add_epi32(self.0, other.0))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        register!(_mm512_sub_epi32(self.0, other.0))
    }

    #[inline(always)]
    fn and(self, other: Self) -> Self {
        register!(_mm512_and_si512(self.0, other.0))
    }

    #[inline(always)]
    fn or(self, other: Self) -> Self {
        register!(_mm512_or_si512(self.0, other.0))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        register!(_mm512_xor_si512(self.0, other.0))
    }

    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        register!(_mm512_mullo_epi32(self.0, other.0))
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        register!(_mm512_srai_epi32::<N>(self.0))
    }

    #[inline(always)]
    fn absolute(self) -> Self {
        register!(_mm512_abs_epi32(self.0))
    }

    #[inline(always)]
    fn maximum(self, other: Self) -> Self {
        register!(_mm512_max_epi32(self.0, other.0))
    }

    #[inline(always)]
    fn largest(self) -> i32 {
        // SAFETY: as in `register`.
        unsafe { _mm512_reduce_max_epi32(self.0) }
    }

    #[inline(always)]
    fn times(self, b: Self, b_times_q_inverse: Self) -> Self {
        let (q, multiples) = (Self::words(Q), Vector::times_low(self, b_times_q_inverse));
        let even = self.even_products(b).minus_wide(multiples.even_products(q));
        let odd = self.odd_words().even_products(b.odd_words());
        even.with_odd(odd.minus_wide(multiples.odd_words().even_products(q)))
    }

    #[inline(always)]
    fn add_products([even, odd]: [Self; 2], a: Self, b: Self) -> [Self; 2] {
        let odd_products = a.odd_words().even_products(b.odd_words());
        [even.plus_wide(a.even_products(b)), odd.plus_wide(odd_products)]
    }

    #[inline(always)]
    fn reduce([even, odd]: [Self; 2]) -> Self {
        let (q, q_inverse) = (Self::words(Q), Self::words(Q_INVERSE));
        let even = even.minus_wide(Vector::times_low(even, q_inverse).even_products(q));
        even.with_odd(odd.minus_wide(Vector::times_low(odd, q_inverse).even_products(q)))
    }

    #[inline(always)]
    fn transpose(rows: [Self; 16]) -> [Self; 16] {
        let mut columns = [Vector::words(0); 16];
        let a = Self::transpose_quarters_of([rows[0], rows[1], rows[2], rows[3]]);
        let b = Self::transpose_quarters_of([rows[4], rows[5], rows[6], rows[7]]);
        let c = Self::transpose_quarters_of([rows[8], rows[9], rows[10], rows[11]]);
        let d = Self::transpose_quarters_of([rows[12], rows[13], rows[14], rows[15]]);
        for i in 0..4 {
            [columns[i], columns[4 + i], columns[8 + i], columns[12 + i]] =
                Self::transpose_quarters([a[i], b[i], c[i], d[i]]);
        }
        columns
    }

    #[inline(always)]
    fn unpack_18_bits(bytes: &[u8; 64]) -> Self {
        Self::unpack(bytes, const { &four_bytes_each(18) }, const { &shifts(18) }, (1 << 18) - 1)
    }

    #[inline(always)]
    fn unpack_20_bits(bytes: &[u8; 64]) -> Self {
        Self::unpack(bytes, const { &four_bytes_each(20) }, const { &shifts(20) }, (1 << 20) - 1)
    }

    #[inline(always)]
    fn from_bytes(bytes: &[i8; 16]) -> Self {
        register!(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes.as_ptr().cast())))
    }

    #[inline(always)]
    fn to_bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        // SAFETY: as in `register`, and the array has the length of 16 words as bytes.
        unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), _mm512_cvtepi32_epi8(self.0)) };
        bytes
    }

    #[inline(always)]
    fn load_bytes(bytes: &[i8; 64]) -> Self {
        register!(_mm512_loadu_si512(bytes.as_ptr().cast()))
    }

    #[inline(always)]
    fn store_bytes(self, bytes: &mut [i8; 64]) {
        // SAFETY: as in `register`, and the array has the length of a register.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn plus_bytes(self, other: Self) -> Self {
        register!(_mm512_add_epi8(self.0, other.0))
    }
}

impl Zmm {
    /// Returns the products of the even words, of 64 bits each.
    #[inline(always)]
    fn even_products(self, other: Self) -> Self {
        register!(_mm512_mul_epi32(self.0, other.0))
    }

    /// Moves the odd words to the even ones.
    #[inline(always)]
    fn odd_words(self) -> Self {
        register!(_mm512_srli_epi64::<32>(self.0))
    }

    /// Returns the odd words as even ones, with the odd words of `odd`.
    #[inline(always)]
    fn with_odd(self, odd: Self) -> Self {
        register!(_mm512_mask_shuffle_epi32::<0b11_11_01_01>(odd.0, EVEN, self.0))
    }

    #[inline(always)]
    fn plus_wide(self, other: Self) -> Self {
        register!(_mm512_add_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn minus_wide(self, other: Self) -> Self {
        register!(_mm512_sub_epi64(self.0, other.0))
    }

    /// Transposes the 4 x 4 words in the same quarter of four vectors.
    #[inline(always)]
    fn transpose_quarters_of([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (ab, cd) =
            (register!(_mm512_unpacklo_epi32(a.0, b.0)), register!(_mm512_unpacklo_epi32(c.0, d.0)));
        let (ab_high, cd_high) =
            (register!(_mm512_unpackhi_epi32(a.0, b.0)), register!(_mm512_unpackhi_epi32(c.0, d.0)));
        [
            register!(_mm512_unpacklo_epi64(ab.0, cd.0)),
            register!(_mm512_unpackhi_epi64(ab.0, cd.0)),
            register!(_mm512_unpacklo_epi64(ab_high.0, cd_high.0)),
            register!(_mm512_unpackhi_epi64(ab_high.0, cd_high.0)),
        ]
    }

    /// Unpacks numbers from four bytes each.
    #[inline(always)]
    fn unpack(bytes: &[u8; 64], from: &[u8; 64], shifts: &Block, mask: i32) -> Self {
        let bytes = register!(_mm512_loadu_si512(bytes.as_ptr().cast()));
        let from = register!(_mm512_loadu_si512(from.as_ptr().cast()));
        let words = register!(_mm512_permutexvar_epi8(from.0, bytes.0));
        let shifts: Self = Vector::load(shifts);
        let shifted = register!(_mm512_srlv_epi32(words.0, shifts.0));
        Vector::and(shifted, Vector::words(mask))
    }
}

impl StateVector for Zmm {
    const LANES: usize = STATES;

    #[inline(always)]
    fn load(words: &[u64; STATES], _: usize) -> Self {
        register!(_mm512_loadu_si512(words.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; STATES], _: usize) {
        // SAFETY: as in `register`, and eight words have the length of a register.
        unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), self.0) }
    }

    #[inline(always)]
    fn transpose(words: &[[u64; STATES]; 8], to: &mut [[u64; 8]; STATES]) {
        let mut rows = [<Self as Vector>::words(0); 8];
        for (row, words) in rows.iter_mut().zip(words) {
            *row = <Self as StateVector>::load(words, 0);
        }
        for (column, to) in <Self as ml_kem::Vector>::transpose_lanes(rows).into_iter().zip(to) {
            StateVector::store(column, to, 0);
        }
    }
}
