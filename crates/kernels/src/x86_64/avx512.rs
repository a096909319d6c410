//! Vectors of ML-KEM on AVX-512.

use super::permutations::{FOUR_WORDS_EACH, TWO_BYTES_EACH, lowest_bytes, quarters, word_of_lane};
use crate::cpu::HaveAvx512;
use crate::keccak::StateWords;
use crate::ml_kem::{
    Entry, Kernels, LoneSecrets, Polynomials, PublicKey, Q, Secrets, State, Stream, VECTOR_BYTES, Vector,
    Workspace, algorithm,
};
use std::arch::asm;
use std::arch::x86_64::*;

/// AVX-512 with byte and word instructions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Avx512(HaveAvx512);

impl Avx512 {
    pub(crate) fn new(proof: HaveAvx512) -> Self {
        Self(proof)
    }
}

/// Each method is a separate function that may use all instructions proved by [`HaveAvx512`]. The called parts of the
/// algorithm are marked for inlining.
impl Kernels for Avx512 {
    type Vector = Zmm;

    fn encapsulate(self, keys: &[&PublicKey], workspace: &mut Workspace<Zmm>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(kernels: Avx512, keys: &[&PublicKey], workspace: &mut Workspace<Zmm>) {
            algorithm::encapsulate(kernels, keys, workspace);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(self, keys, workspace) }
    }

    fn encapsulate_lone(self, key: &PublicKey, workspace: &mut Workspace<Zmm>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(kernels: Avx512, key: &PublicKey, workspace: &mut Workspace<Zmm>) {
            algorithm::encapsulate_lone(kernels, key, workspace);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(self, key, workspace) }
    }

    fn keccak(self, state: &mut State<Zmm>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(state: &mut State<Zmm>) {
            algorithm::keccak(state);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(state) }
    }

    fn sample(self, bytes: &Stream, len: usize, entry: &mut Entry) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(bytes: &Stream, len: usize, entry: &mut Entry) {
            algorithm::sample::<Zmm>(bytes, len, entry);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(bytes, len, entry) }
    }

    fn ntt(self, polynomials: &mut Polynomials<Zmm>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(polynomials: &mut Polynomials<Zmm>) {
            algorithm::ntt(polynomials);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(polynomials) }
    }

    fn inverse_ntt(self, polynomials: &mut Polynomials<Zmm>) {
        #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,bmi2,popcnt")]
        fn kernel(polynomials: &mut Polynomials<Zmm>) {
            algorithm::inverse_ntt(polynomials);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(polynomials) }
    }

    fn wipe(self, secrets: &mut Secrets<Zmm>) {
        #[target_feature(enable = "avx512f")]
        fn kernel(secrets: &mut Secrets<Zmm>) {
            algorithm::wipe::<Zmm, _>(secrets);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(secrets) };
        wipe_registers(self);
    }

    fn wipe_lone(self, secrets: &mut LoneSecrets<Zmm>) {
        #[target_feature(enable = "avx512f")]
        fn kernel(secrets: &mut LoneSecrets<Zmm>) {
            algorithm::wipe::<Zmm, _>(secrets);
        }
        // SAFETY: `self` proves the instructions.
        unsafe { kernel(secrets) };
        wipe_registers(self);
    }
}

/// Clears the vector registers.
pub(super) fn wipe_registers(_: Avx512) {
    // SAFETY: the argument proves the instructions, and the registers are named as clobbered.
    unsafe {
        asm!(
            "vzeroall",
            "vpxorq zmm16, zmm16, zmm16", "vpxorq zmm17, zmm17, zmm17", "vpxorq zmm18, zmm18, zmm18",
            "vpxorq zmm19, zmm19, zmm19", "vpxorq zmm20, zmm20, zmm20", "vpxorq zmm21, zmm21, zmm21",
            "vpxorq zmm22, zmm22, zmm22", "vpxorq zmm23, zmm23, zmm23", "vpxorq zmm24, zmm24, zmm24",
            "vpxorq zmm25, zmm25, zmm25", "vpxorq zmm26, zmm26, zmm26", "vpxorq zmm27, zmm27, zmm27",
            "vpxorq zmm28, zmm28, zmm28", "vpxorq zmm29, zmm29, zmm29", "vpxorq zmm30, zmm30, zmm30",
            "vpxorq zmm31, zmm31, zmm31",
            out("xmm0") _, out("xmm1") _, out("xmm2") _, out("xmm3") _, out("xmm4") _, out("xmm5") _,
            out("xmm6") _, out("xmm7") _, out("xmm8") _, out("xmm9") _, out("xmm10") _, out("xmm11") _,
            out("xmm12") _, out("xmm13") _, out("xmm14") _, out("xmm15") _,
            options(nomem, nostack, preserves_flags),
        );
    }
}

/// Register. Only code called by an [`Avx512`] creates and uses one, so the instructions are available.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct Zmm(pub(super) __m512i);

/// Mask of the odd words, or halves of lanes.
const ODD_WORDS: u32 = 0xaaaa_aaaa;
const ODD_HALVES: u16 = 0xaaaa;

/// Truth tables of `a ^ b ^ c` and of `a ^ (!b & c)`.
const XOR3: i32 = 0x96;
const CHI: i32 = 0xd2;

/// Wraps the register that an intrinsic returns.
macro_rules! register {
    ($intrinsic:expr) => {
        // SAFETY: called by an `Avx512`, so the instruction exists. Memory that is read has the length of a register.
        Zmm(unsafe { $intrinsic })
    };
}

impl StateWords for Zmm {
    #[inline(always)]
    fn zero() -> Self {
        register!(_mm512_setzero_si512())
    }

    #[inline(always)]
    fn lanes(lane: u64) -> Self {
        register!(_mm512_set1_epi64(lane as i64))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        register!(_mm512_xor_si512(self.0, other.0))
    }

    #[inline(always)]
    fn xor3(self, a: Self, b: Self) -> Self {
        register!(_mm512_ternarylogic_epi64::<XOR3>(self.0, a.0, b.0))
    }

    #[inline(always)]
    fn chi(self, a: Self, b: Self) -> Self {
        register!(_mm512_ternarylogic_epi64::<CHI>(self.0, a.0, b.0))
    }

    #[inline(always)]
    fn rotate<const N: i32>(self) -> Self {
        register!(_mm512_rol_epi64::<N>(self.0))
    }
}

impl Vector for Zmm {
    #[inline(always)]
    fn words(word: i16) -> Self {
        register!(_mm512_set1_epi16(word))
    }

    #[inline(always)]
    fn load(bytes: &[u8; VECTOR_BYTES]) -> Self {
        register!(_mm512_loadu_si512(bytes.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; VECTOR_BYTES]) {
        // SAFETY: as in `register`, and the array has the length of a register.
        unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), self.0) }
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
    fn shift_lanes_left(self, bits: u32) -> Self {
        register!(_mm512_sll_epi64(self.0, _mm_cvtsi32_si128(bits as i32)))
    }

    #[inline(always)]
    fn signs_of_lanes(self) -> Self {
        register!(_mm512_srai_epi64::<63>(self.0))
    }

    #[inline(always)]
    fn plus(self, other: Self) -> Self {
        register!(_mm512_add_epi16(self.0, other.0))
    }

    #[inline(always)]
    fn minus(self, other: Self) -> Self {
        register!(_mm512_sub_epi16(self.0, other.0))
    }

    #[inline(always)]
    fn times_low(self, other: Self) -> Self {
        register!(_mm512_mullo_epi16(self.0, other.0))
    }

    #[inline(always)]
    fn times_high(self, other: Self) -> Self {
        register!(_mm512_mulhi_epi16(self.0, other.0))
    }

    #[inline(always)]
    fn times_high_unsigned(self, other: Self) -> Self {
        register!(_mm512_mulhi_epu16(self.0, other.0))
    }

    #[inline(always)]
    fn shift_left<const N: u32>(self) -> Self {
        register!(_mm512_slli_epi16::<N>(self.0))
    }

    #[inline(always)]
    fn shift_right<const N: u32>(self) -> Self {
        register!(_mm512_srli_epi16::<N>(self.0))
    }

    #[inline(always)]
    fn shift_right_signed<const N: u32>(self) -> Self {
        register!(_mm512_srai_epi16::<N>(self.0))
    }

    #[inline(always)]
    fn repeat_lower(self) -> Self {
        register!(_mm512_shuffle_i64x2::<0b01_00_01_00>(self.0, self.0))
    }

    #[inline(always)]
    fn repeat_upper(self) -> Self {
        register!(_mm512_shuffle_i64x2::<0b11_10_11_10>(self.0, self.0))
    }

    #[inline(always)]
    fn broadcast_word<const I: usize>(self) -> Self {
        let from = Self::load(const { &word_of_lane(I) });
        register!(_mm512_shuffle_epi8(self.0, from.0))
    }

    #[inline(always)]
    fn interleave<const LEN: usize>(self, other: Self) -> [Self; 2] {
        match LEN {
            1 => self.interleave_words(other),
            2 => self.interleave_halves(other),
            4 => [self.even_lanes(other), self.odd_lanes(other)],
            8 => {
                let even = Self::load(const { &quarters(0) });
                let odd = Self::load(const { &quarters(1) });
                [
                    register!(_mm512_permutex2var_epi64(self.0, even.0, other.0)),
                    register!(_mm512_permutex2var_epi64(self.0, odd.0, other.0)),
                ]
            }
            16 => [
                register!(_mm512_shuffle_i64x2::<0b01_00_01_00>(self.0, other.0)),
                register!(_mm512_shuffle_i64x2::<0b11_10_11_10>(self.0, other.0)),
            ],
            _ => unreachable!("a length that the trait does not name"),
        }
    }

    #[inline(always)]
    fn transpose_words([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (ab, cd) = (a.interleave_words(b), c.interleave_words(d));
        let [first, third] = ab[0].interleave_halves(cd[0]);
        let [second, fourth] = ab[1].interleave_halves(cd[1]);
        [first, second, third, fourth]
    }

    #[inline(always)]
    fn transpose_lanes(rows: [Self; 8]) -> [Self; 8] {
        let [a, b, c, d, e, f, g, h] = rows;
        let even =
            Self::transpose_quarters([a.even_lanes(b), c.even_lanes(d), e.even_lanes(f), g.even_lanes(h)]);
        let odd = Self::transpose_quarters([a.odd_lanes(b), c.odd_lanes(d), e.odd_lanes(f), g.odd_lanes(h)]);
        [even[0], odd[0], even[1], odd[1], even[2], odd[2], even[3], odd[3]]
    }

    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        register!(_mm512_movm_epi16(bits))
    }

    #[inline(always)]
    fn four_bits(self, i: usize) -> Self {
        let words = Self::load(&FOUR_WORDS_EACH).plus(Self::words(8 * i as i16));
        let shifts = Self::lanes(0x000c_0008_0004_0000);
        let bits = register!(_mm512_srlv_epi16(_mm512_permutexvar_epi16(words.0, self.0), shifts.0));
        bits.and(Self::words(15))
    }

    #[inline(always)]
    fn pack<const BITS: u32>(self) -> Self {
        // Two words to a half of a lane, two halves to the lowest bits of a lane, and their bytes together.
        let second = Self::lanes(((1 << BITS) << 16 | 1) * 0x1_0000_0001);
        let halves = register!(_mm512_madd_epi16(self.0, second.0));
        let shift = u64::from(32 - 2 * BITS);
        let lanes = register!(_mm512_sllv_epi32(halves.0, Self::lanes(shift).0));
        let lanes = register!(_mm512_srlv_epi64(lanes.0, Self::lanes(shift).0));
        let from = Self::load(const { &lowest_bytes(BITS as usize / 2) });
        register!(_mm512_permutexvar_epi8(from.0, lanes.0))
    }

    #[inline(always)]
    fn unpack_12_bits(bytes: &[u8; VECTOR_BYTES]) -> Self {
        let (bytes, from) = (Self::load(bytes), Self::load(&TWO_BYTES_EACH));
        let pairs = register!(_mm512_permutexvar_epi8(from.0, bytes.0));
        let odd = register!(_mm512_mask_srli_epi16::<4>(pairs.0, ODD_WORDS, pairs.0));
        odd.and(Self::words(0xfff))
    }

    #[inline(always)]
    fn store_reduced(self, count: usize, to: &mut [u8; VECTOR_BYTES]) -> usize {
        // Works on halves, as 32-bit numbers: compressing words would require VBMI2.
        // SAFETY: as in `register`. The second store begins at most 32 bytes from the start of 64.
        unsafe {
            let below = _mm512_cmplt_epu16_mask(self.0, Self::words(Q).0) & (u32::MAX >> (32 - count));
            let lower = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(self.0));
            let upper = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64::<1>(self.0));
            let lower = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(below as u16, lower));
            let upper = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32((below >> 16) as u16, upper));
            let in_lower = (below as u16).count_ones() as usize;
            _mm256_storeu_si256(to.as_mut_ptr().cast(), lower);
            _mm256_storeu_si256(to.as_mut_ptr().add(2 * in_lower).cast(), upper);
            below.count_ones() as usize
        }
    }
}

impl Zmm {
    /// Transposes the 4x4 pairs of lanes of four vectors.
    #[inline(always)]
    pub(super) fn transpose_quarters([a, b, c, d]: [Self; 4]) -> [Self; 4] {
        let (ab, cd) = (a.even_quarters(b), c.even_quarters(d));
        let (ab_odd, cd_odd) = (a.odd_quarters(b), c.odd_quarters(d));
        [ab.even_quarters(cd), ab_odd.even_quarters(cd_odd), ab.odd_quarters(cd), ab_odd.odd_quarters(cd_odd)]
    }

    /// Returns the even words of both, alternately, and the odd ones.
    #[inline(always)]
    fn interleave_words(self, other: Self) -> [Self; 2] {
        [
            register!(_mm512_mask_blend_epi16(ODD_WORDS, self.0, _mm512_slli_epi32::<16>(other.0))),
            register!(_mm512_mask_blend_epi16(ODD_WORDS, _mm512_srli_epi32::<16>(self.0), other.0)),
        ]
    }

    /// Returns the lower halves of the lanes of both, alternately, and the upper ones.
    #[inline(always)]
    fn interleave_halves(self, other: Self) -> [Self; 2] {
        [
            register!(_mm512_mask_blend_epi32(ODD_HALVES, self.0, _mm512_slli_epi64::<32>(other.0))),
            register!(_mm512_mask_blend_epi32(ODD_HALVES, _mm512_srli_epi64::<32>(self.0), other.0)),
        ]
    }

    /// Returns the even lanes of both, alternately.
    #[inline(always)]
    fn even_lanes(self, other: Self) -> Self {
        register!(_mm512_unpacklo_epi64(self.0, other.0))
    }

    #[inline(always)]
    fn odd_lanes(self, other: Self) -> Self {
        register!(_mm512_unpackhi_epi64(self.0, other.0))
    }

    /// Returns the even quarters, of two lanes each, of one and then of the other.
    #[inline(always)]
    fn even_quarters(self, other: Self) -> Self {
        register!(_mm512_shuffle_i64x2::<0b10_00_10_00>(self.0, other.0))
    }

    #[inline(always)]
    fn odd_quarters(self, other: Self) -> Self {
        register!(_mm512_shuffle_i64x2::<0b11_01_11_01>(self.0, other.0))
    }
}
