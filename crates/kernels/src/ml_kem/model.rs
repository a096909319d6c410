//! Vector in plain arithmetic: the reference for the AVX-512 one, and the implementation for valgrind, which does not
//! support AVX-512.

use super::keccak::State;
use super::kernels::Kernels;
use super::matrix::{Entry, Stream};
use super::ntt::{Polynomials, Q};
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::workspace::{LoneSecrets, Secrets, Workspace};
use super::{PublicKey, algorithm};
use crate::keccak::StateWords;
use std::array::from_fn;

#[derive(Clone, Copy)]
pub(super) struct Model;

impl Kernels for Model {
    type Vector = Plain;

    fn encapsulate(self, keys: &[&PublicKey], workspace: &mut Workspace<Plain>) {
        algorithm::encapsulate(self, keys, workspace);
    }

    fn encapsulate_lone(self, key: &PublicKey, workspace: &mut Workspace<Plain>) {
        algorithm::encapsulate_lone(self, key, workspace);
    }

    fn keccak(self, state: &mut State<Plain>) {
        algorithm::keccak(state);
    }

    fn sample(self, bytes: &Stream, len: usize, entry: &mut Entry) {
        algorithm::sample::<Plain>(bytes, len, entry);
    }

    fn ntt(self, polynomials: &mut Polynomials<Plain>) {
        algorithm::ntt(polynomials);
    }

    fn inverse_ntt(self, polynomials: &mut Polynomials<Plain>) {
        algorithm::inverse_ntt(polynomials);
    }

    fn wipe(self, secrets: &mut Secrets<Plain>) {
        algorithm::wipe::<Plain, _>(secrets);
    }

    fn wipe_lone(self, secrets: &mut LoneSecrets<Plain>) {
        algorithm::wipe::<Plain, _>(secrets);
    }
}

/// Lanes of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Plain(pub(super) [u64; LANES]);

impl Plain {
    pub(super) fn from_words(word: impl Fn(usize) -> i16) -> Self {
        Self(from_fn(|lane| {
            (0..4).fold(0, |bits, i| bits | u64::from(word(4 * lane + i) as u16) << (16 * i))
        }))
    }

    pub(super) fn word(self, i: usize) -> i16 {
        (self.0[i / 4] >> (16 * (i % 4))) as i16
    }

    fn zip_words(self, other: Self, f: impl Fn(i16, i16) -> i16) -> Self {
        Self::from_words(|i| f(self.word(i), other.word(i)))
    }

    fn map_words(self, f: impl Fn(i16) -> i16) -> Self {
        Self::from_words(|i| f(self.word(i)))
    }

    fn zip_lanes(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        Self(from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

/// Out of line, because the algorithm is inlined and long.
impl StateWords for Plain {
    #[inline(never)]
    fn zero() -> Self {
        Self([0; LANES])
    }

    #[inline(never)]
    fn lanes(lane: u64) -> Self {
        Self([lane; LANES])
    }

    #[inline(never)]
    fn xor(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a ^ b)
    }

    #[inline(never)]
    fn xor3(self, a: Self, b: Self) -> Self {
        self.xor(a).xor(b)
    }

    #[inline(never)]
    fn chi(self, a: Self, b: Self) -> Self {
        self.xor(a.zip_lanes(b, |a, b| !a & b))
    }

    #[inline(never)]
    fn rotate<const N: i32>(self) -> Self {
        Self(self.0.map(|lane| lane.rotate_left(N as u32)))
    }
}

/// Out of line, because the algorithm is inlined and long.
impl Vector for Plain {
    #[inline(never)]
    fn words(word: i16) -> Self {
        Self::from_words(|_| word)
    }

    #[inline(never)]
    fn load(bytes: &[u8; VECTOR_BYTES]) -> Self {
        Self(from_fn(|lane| u64::from_le_bytes(bytes.as_chunks().0[lane])))
    }

    #[inline(never)]
    fn store(self, bytes: &mut [u8; VECTOR_BYTES]) {
        bytes.as_chunks_mut().0.iter_mut().zip(self.0).for_each(|(bytes, lane)| *bytes = lane.to_le_bytes());
    }

    #[inline(never)]
    fn and(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a & b)
    }

    #[inline(never)]
    fn or(self, other: Self) -> Self {
        self.zip_lanes(other, |a, b| a | b)
    }

    #[inline(never)]
    fn shift_lanes_left(self, bits: u32) -> Self {
        Self(self.0.map(|lane| lane << bits))
    }

    #[inline(never)]
    fn signs_of_lanes(self) -> Self {
        Self(self.0.map(|lane| (lane as i64 >> 63) as u64))
    }

    #[inline(never)]
    fn plus(self, other: Self) -> Self {
        self.zip_words(other, i16::wrapping_add)
    }

    #[inline(never)]
    fn minus(self, other: Self) -> Self {
        self.zip_words(other, i16::wrapping_sub)
    }

    #[inline(never)]
    fn times_low(self, other: Self) -> Self {
        self.zip_words(other, i16::wrapping_mul)
    }

    #[inline(never)]
    fn times_high(self, other: Self) -> Self {
        self.zip_words(other, |a, b| ((i32::from(a) * i32::from(b)) >> 16) as i16)
    }

    #[inline(never)]
    fn times_high_unsigned(self, other: Self) -> Self {
        self.zip_words(other, |a, b| ((u32::from(a as u16) * u32::from(b as u16)) >> 16) as i16)
    }

    #[inline(never)]
    fn shift_left<const N: u32>(self) -> Self {
        self.map_words(|word| word << N)
    }

    #[inline(never)]
    fn shift_right<const N: u32>(self) -> Self {
        self.map_words(|word| (word as u16 >> N) as i16)
    }

    #[inline(never)]
    fn shift_right_signed<const N: u32>(self) -> Self {
        self.map_words(|word| word >> N)
    }

    #[inline(never)]
    fn repeat_lower(self) -> Self {
        Self(from_fn(|lane| self.0[lane % 4]))
    }

    #[inline(never)]
    fn repeat_upper(self) -> Self {
        Self(from_fn(|lane| self.0[4 + lane % 4]))
    }

    #[inline(never)]
    fn broadcast_word<const I: usize>(self) -> Self {
        Self::from_words(|i| self.word(i / 4 * 4 + I))
    }

    #[inline(never)]
    fn interleave<const LEN: usize>(self, other: Self) -> [Self; 2] {
        [0, 1].map(|odd| {
            Self::from_words(|i| {
                let (group, word) = (i / LEN, i % LEN);
                let from = if group.is_multiple_of(2) { self } else { other };
                from.word(LEN * (group / 2 * 2 + odd) + word)
            })
        })
    }

    #[inline(never)]
    fn transpose_words(rows: [Self; 4]) -> [Self; 4] {
        from_fn(|column| Self::from_words(|i| rows[i % 4].word(i / 4 * 4 + column)))
    }

    #[inline(never)]
    fn transpose_lanes(rows: [Self; 8]) -> [Self; 8] {
        from_fn(|column| Self(from_fn(|row| rows[row].0[column])))
    }

    #[inline(never)]
    fn from_bits(bits: u32) -> Self {
        Self::from_words(|i| -((bits >> i & 1) as i16))
    }

    #[inline(never)]
    fn four_bits(self, i: usize) -> Self {
        Self::from_words(|word| (self.word(8 * i + word / 4) >> (4 * (word % 4))) & 15)
    }

    #[inline(never)]
    fn pack<const BITS: u32>(self) -> Self {
        let mut bytes = [0; VECTOR_BYTES];
        for bit in 0..32 * BITS {
            let word = self.word((bit / BITS) as usize) as u16;
            bytes[bit as usize / 8] |= ((word >> (bit % BITS) & 1) as u8) << (bit % 8);
        }
        Self::load(&bytes)
    }

    #[inline(never)]
    fn unpack_12_bits(bytes: &[u8; VECTOR_BYTES]) -> Self {
        let pair = |i: usize| i16::from(bytes[i]) | i16::from(bytes[i + 1]) << 8;
        Self::from_words(|i| (pair(i / 2 * 3 + i % 2) >> (4 * (i % 2))) & 0xfff)
    }

    #[inline(never)]
    fn store_reduced(self, count: usize, to: &mut [u8; VECTOR_BYTES]) -> usize {
        let words = (0..count).map(|i| self.word(i)).filter(|word| (*word as u16) < Q as u16);
        words.zip(to.as_chunks_mut().0).map(|(word, to)| *to = word.to_le_bytes()).count()
    }
}
