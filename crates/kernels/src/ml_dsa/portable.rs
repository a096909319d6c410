//! Vectors in plain arithmetic: the tier for all CPUs, the reference for the instruction sets, and what valgrind runs.

use super::kernels::Kernels;
use super::ntt::Q_INVERSE;
use super::polynomial::{BLOCK, Block, Q};
use super::vector::{STATES, StateVector, Vector};
use crate::keccak::StateWords;
use std::array::from_fn;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Portable;

impl Kernels for Portable {
    type Vector = Plain;
    type States = u64;
}

/// Words of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plain(pub(crate) [i32; BLOCK]);

impl Plain {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(i32, i32) -> i32) -> Self {
        Self(from_fn(|i| f(self.0[i], other.0[i])))
    }

    #[inline(always)]
    fn map(self, f: impl Fn(i32) -> i32) -> Self {
        Self(self.0.map(f))
    }

    /// Unpacks numbers of the given bits.
    #[inline(always)]
    fn unpack(bits: usize, bytes: &[u8; 64]) -> Self {
        Self(from_fn(|i| {
            let at = bits * i / 8;
            let word = u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            (word >> (bits * i % 8)) as i32 & ((1 << bits) - 1)
        }))
    }

    /// Returns the sums of pairs of words, as numbers of 64 bits.
    #[inline(always)]
    fn wide(sums: Self) -> [i64; BLOCK / 2] {
        from_fn(|i| i64::from(sums.0[2 * i + 1]) << 32 | i64::from(sums.0[2 * i] as u32))
    }

    #[inline(always)]
    fn of_wide(sums: [i64; BLOCK / 2]) -> Self {
        Self(from_fn(|i| (sums[i / 2] >> (32 * (i % 2))) as i32))
    }
}

/// Montgomery's reduction.
#[inline(always)]
fn reduce(sum: i64) -> i32 {
    let multiple = i64::from((sum as i32).wrapping_mul(Q_INVERSE)) * i64::from(Q);
    ((sum - multiple) >> 32) as i32
}

/// Out of line, because the algorithm is inlined and long.
impl Vector for Plain {
    #[inline(never)]
    fn words(word: i32) -> Self {
        Self([word; BLOCK])
    }

    #[inline(never)]
    fn load(block: &Block) -> Self {
        Self(block.0)
    }

    #[inline(never)]
    fn store(self, block: &mut Block) {
        block.0 = self.0;
    }

    #[inline(never)]
    fn plus(self, other: Self) -> Self {
        self.zip(other, i32::wrapping_add)
    }

    #[inline(never)]
    fn minus(self, other: Self) -> Self {
        self.zip(other, i32::wrapping_sub)
    }

    #[inline(never)]
    fn and(self, other: Self) -> Self {
        self.zip(other, |a, b| a & b)
    }

    #[inline(never)]
    fn or(self, other: Self) -> Self {
        self.zip(other, |a, b| a | b)
    }

    #[inline(never)]
    fn xor(self, other: Self) -> Self {
        self.zip(other, |a, b| a ^ b)
    }

    #[inline(never)]
    fn times_low(self, other: Self) -> Self {
        self.zip(other, i32::wrapping_mul)
    }

    #[inline(never)]
    fn shift_right<const N: u32>(self) -> Self {
        self.map(|a| a >> N)
    }

    #[inline(never)]
    fn absolute(self) -> Self {
        self.map(|a| (a ^ (a >> 31)).wrapping_sub(a >> 31))
    }

    #[inline(never)]
    fn maximum(self, other: Self) -> Self {
        // Without a comparison, which might become a branch.
        self.zip(other, |a, b| {
            let b_is_less = ((i64::from(b) - i64::from(a)) >> 63) as i32;
            b ^ ((a ^ b) & b_is_less)
        })
    }

    #[inline(never)]
    fn largest(self) -> i32 {
        let mut half = BLOCK / 2;
        let mut largest = self;
        while half > 0 {
            largest = largest.maximum(Self(from_fn(|i| largest.0[(i + half) % BLOCK])));
            half /= 2;
        }
        largest.0[0]
    }

    #[inline(never)]
    fn times(self, b: Self, b_times_q_inverse: Self) -> Self {
        Self(from_fn(|i| {
            let multiple = i64::from(self.0[i].wrapping_mul(b_times_q_inverse.0[i])) * i64::from(Q);
            ((i64::from(self.0[i]) * i64::from(b.0[i]) - multiple) >> 32) as i32
        }))
    }

    #[inline(never)]
    fn add_products(sums: [Self; 2], a: Self, b: Self) -> [Self; 2] {
        from_fn(|odd| {
            let sums = Self::wide(sums[odd]);
            let product = |i: usize| i64::from(a.0[2 * i + odd]) * i64::from(b.0[2 * i + odd]);
            Self::of_wide(from_fn(|i| sums[i].wrapping_add(product(i))))
        })
    }

    #[inline(never)]
    fn reduce(sums: [Self; 2]) -> Self {
        let wide = sums.map(Self::wide);
        Self(from_fn(|i| reduce(wide[i % 2][i / 2])))
    }

    #[inline(never)]
    fn transpose(rows: [Self; 16]) -> [Self; 16] {
        from_fn(|column| Self(from_fn(|row| rows[row].0[column])))
    }

    #[inline(never)]
    fn unpack_18_bits(bytes: &[u8; 64]) -> Self {
        Self::unpack(18, bytes)
    }

    #[inline(never)]
    fn unpack_20_bits(bytes: &[u8; 64]) -> Self {
        Self::unpack(20, bytes)
    }

    #[inline(never)]
    fn from_bytes(bytes: &[i8; 16]) -> Self {
        Self(bytes.map(i32::from))
    }

    #[inline(never)]
    fn to_bytes(self) -> [u8; 16] {
        self.0.map(|word| word as u8)
    }

    #[inline(never)]
    fn load_bytes(bytes: &[i8; 64]) -> Self {
        Self(from_fn(|i| i32::from_le_bytes(from_fn(|j| bytes[4 * i + j] as u8))))
    }

    #[inline(never)]
    fn store_bytes(self, bytes: &mut [i8; 64]) {
        *bytes = from_fn(|i| self.0[i / 4].to_le_bytes()[i % 4] as i8);
    }

    #[inline(never)]
    fn plus_bytes(self, other: Self) -> Self {
        // Without carries: seven bits of each byte, then the eighth.
        const SEVEN: i32 = 0x7f7f_7f7f;
        self.zip(other, |a, b| (a & SEVEN).wrapping_add(b & SEVEN) ^ ((a ^ b) & !SEVEN))
    }
}

impl StateWords for u64 {
    #[inline(always)]
    fn zero() -> Self {
        0
    }

    #[inline(always)]
    fn lanes(lane: u64) -> Self {
        lane
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        self ^ other
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self ^ a ^ b
    }

    #[inline(always)]
    fn chi(self, a: Self, b: Self) -> Self {
        self ^ (!a & b)
    }

    #[inline(always)]
    fn rotate<const N: i32>(self) -> Self {
        self.rotate_left(N as u32)
    }
}

impl StateVector for u64 {
    const LANES: usize = 1;

    #[inline(always)]
    fn load(words: &[u64; STATES], first: usize) -> Self {
        words[first]
    }

    #[inline(always)]
    fn store(self, words: &mut [u64; STATES], first: usize) {
        words[first] = self;
    }

    #[inline(always)]
    fn transpose(words: &[[u64; STATES]; 8], to: &mut [[u64; 8]; STATES]) {
        *to = from_fn(|state| from_fn(|word| words[word][state]));
    }
}
