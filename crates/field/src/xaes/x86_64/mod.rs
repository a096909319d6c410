//! XAES-256-GCM for short texts, with AES-NI and PCLMULQDQ.
//!
//! Every message has its own AES key, and a field is short: expanding the key costs more than using it. Each round
//! key is therefore used as soon as it is computed, on eight blocks side by side: the hash key, the block that masks
//! the tag, and six blocks of key stream. The rounds fill the latency of the expansion, and the round keys of a text
//! of up to 96 bytes need not be written to memory. Longer texts keep them, and erase them.
//!
//! The expansion takes SubWord from AESENCLAST, which is several times as fast as AESKEYGENASSIST.
//!
//! No branch and no address depends on a secret; lengths are public. The tests compare this with the portable form
//! for every length around the boundaries.

mod block;
mod ghash;

use block::{BLOCK, load, store};
use ghash::Ghash;
use std::arch::x86_64::{
    __m128i, _mm_aesenc_si128, _mm_aesenclast_si128, _mm_insert_epi32, _mm_set1_epi32, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_shuffle_epi32, _mm_slli_si128, _mm_srli_si128, _mm_testz_si128, _mm_xor_si128,
};
use zeroize::Zeroize;

/// Proof that this CPU has AES-NI, PCLMULQDQ and AVX, and that the operating system saves their registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct HaveAesClmul(());

impl HaveAesClmul {
    pub(super) fn detect() -> Option<Self> {
        let present = std::is_x86_feature_detected!("aes")
            && std::is_x86_feature_detected!("pclmulqdq")
            && std::is_x86_feature_detected!("avx");
        present.then_some(Self(()))
    }
}

/// Key from which message keys are derived, expanded.
pub(super) struct Root {
    round_keys: [__m128i; ROUND_KEYS],
    /// CMAC's subkey K1.
    k1: __m128i,
    /// Proof that the CPU can use it.
    _token: HaveAesClmul,
}

impl Root {
    pub(super) fn new(token: HaveAesClmul, key: &[u8; 32], k1: &[u8; BLOCK]) -> Self {
        // SAFETY: the token proves that the CPU has the features that the function is compiled for.
        unsafe { Self::new_with_features(token, key, k1) }
    }

    /// Encrypts `text` in place and returns the tag.
    pub(super) fn seal(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        // SAFETY: the existence of a root proves that the CPU has the features.
        unsafe { self.seal_with_features(nonce, aad, text) }
    }

    /// Decrypts `text` in place if `tag` is right; otherwise leaves it unchanged and returns false.
    #[must_use]
    pub(super) fn open(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        // SAFETY: as above.
        unsafe { self.open_with_features(nonce, aad, text, tag) }
    }

    #[target_feature(enable = "aes,avx")]
    fn new_with_features(token: HaveAesClmul, key: &[u8; 32], k1: &[u8; BLOCK]) -> Self {
        let mut round_keys = [zero(); ROUND_KEYS];
        expand_and_encrypt::<0, true>(halves(key), [], &mut round_keys);
        Self { round_keys, k1: load(k1), _token: token }
    }

    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn seal_with_features(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        self.stream(nonce, text.len()).seal(aad, text)
    }

    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn open_with_features(&self, nonce: &[u8; 24], aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        self.stream(nonce, text.len()).open(aad, text, tag)
    }

    /// Computes the key stream of one message, under its derived key.
    #[inline]
    #[target_feature(enable = "aes,avx")]
    fn stream(&self, nonce: &[u8; 24], length: usize) -> KeyStream {
        let first: &[u8; BLOCK] = nonce.first_chunk().expect("24 > 16");
        let last: &[u8; BLOCK] = nonce.last_chunk().expect("24 > 16");
        // Context in bytes 4 to 15, after a counter of 16 bits, the label X and a zero.
        let context = _mm_slli_si128::<4>(load(first));
        let masked = _mm_xor_si128(context, self.k1);
        let message =
            |counter: i32| _mm_xor_si128(masked, _mm_insert_epi32::<0>(zero(), 0x0058_0000 | counter << 8));
        let key = encrypt(&self.round_keys, [message(1), message(2)]);
        // The last twelve bytes, and room for the block number.
        let counter = _mm_srli_si128::<4>(load(last));
        KeyStream::new(key, counter, length)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        self.round_keys.zeroize();
        self.k1.zeroize();
    }
}

/// Number of round keys of AES-256.
const ROUND_KEYS: usize = 15;
/// Number of blocks that are encrypted side by side.
const LANES: usize = 8;
/// Number of key-stream blocks among the first eight; the others are the hash key and the tag's mask.
const FIRST: usize = LANES - 2;

/// Key stream of one message, with the inputs of its tag.
struct KeyStream {
    counter: __m128i,
    /// E(0), the key of GHASH.
    hash_key: __m128i,
    /// E(J0), which masks the tag.
    mask: __m128i,
    first: [__m128i; FIRST],
    /// Round keys for texts that are longer than the first blocks.
    round_keys: Option<[__m128i; ROUND_KEYS]>,
}

impl KeyStream {
    #[inline]
    #[target_feature(enable = "aes,avx")]
    fn new(key: [__m128i; 2], counter: __m128i, length: usize) -> Self {
        let mut blocks = [zero(); LANES];
        for (block, number) in blocks[1..].iter_mut().zip(1..) {
            *block = numbered(counter, number);
        }
        let mut round_keys = [zero(); ROUND_KEYS];
        if length > FIRST * BLOCK {
            let [hash_key, mask, first @ ..] =
                expand_and_encrypt::<LANES, true>(key, blocks, &mut round_keys);
            Self { counter, hash_key, mask, first, round_keys: Some(round_keys) }
        } else {
            let [hash_key, mask, first @ ..] =
                expand_and_encrypt::<LANES, false>(key, blocks, &mut round_keys);
            Self { counter, hash_key, mask, first, round_keys: None }
        }
    }

    #[inline]
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn seal(&self, aad: &[u8], text: &mut [u8]) -> [u8; 16] {
        self.apply(text);
        let mut tag = [0; BLOCK];
        store(&mut tag, self.tag(aad, text));
        tag
    }

    #[inline]
    #[target_feature(enable = "aes,pclmulqdq,avx")]
    fn open(&self, aad: &[u8], text: &mut [u8], tag: &[u8; 16]) -> bool {
        let difference = _mm_xor_si128(self.tag(aad, text), load(tag));
        let is_right = _mm_testz_si128(difference, difference) == 1;
        if is_right {
            self.apply(text);
        }
        is_right
    }

    #[inline]
    #[target_feature(enable = "aes,avx")]
    fn apply(&self, text: &mut [u8]) {
        let (beginning, rest) = text.split_at_mut(text.len().min(FIRST * BLOCK));
        xor_into(beginning, &self.first);
        let Some(round_keys) = &self.round_keys else { return };
        // J0 has the number 1, and the first blocks of key stream follow it.
        let mut number = 2 + FIRST as u32;
        for chunk in rest.chunks_mut(LANES * BLOCK) {
            let mut blocks = [zero(); LANES];
            for block in &mut blocks {
                *block = numbered(self.counter, number);
                number = number.wrapping_add(1);
            }
            xor_into(chunk, &encrypt(round_keys, blocks));
        }
    }

    #[inline]
    #[target_feature(enable = "pclmulqdq,avx")]
    fn tag(&self, aad: &[u8], text: &[u8]) -> __m128i {
        let mut hash = Ghash::new(self.hash_key);
        hash.update(aad);
        hash.update(text);
        _mm_xor_si128(hash.finish(aad.len(), text.len()), self.mask)
    }
}

impl Drop for KeyStream {
    fn drop(&mut self) {
        if let Some(round_keys) = &mut self.round_keys {
            round_keys.zeroize();
        }
        self.first.zeroize();
        self.hash_key.zeroize();
    }
}

/// Returns `counter` with the block number `number` in its last four bytes.
#[inline]
#[target_feature(enable = "avx")]
fn numbered(counter: __m128i, number: u32) -> __m128i {
    _mm_insert_epi32::<3>(counter, number.swap_bytes().cast_signed())
}

/// Expands a key (FIPS 197, section 5.2) and encrypts `blocks` with each round key at once.
#[inline]
#[target_feature(enable = "aes,avx")]
fn expand_and_encrypt<const N: usize, const KEEP: bool>(
    [mut even, mut odd]: [__m128i; 2],
    mut blocks: [__m128i; N],
    kept: &mut [__m128i; ROUND_KEYS],
) -> [__m128i; N] {
    let mut keep = |round: usize, key| {
        if KEEP {
            kept[round] = key;
        }
    };
    keep(0, even);
    keep(1, odd);
    for block in &mut blocks {
        *block = _mm_aesenc_si128(_mm_xor_si128(*block, even), odd);
    }
    for (pair, rcon) in [0x01, 0x02, 0x04, 0x08, 0x10, 0x20].into_iter().enumerate() {
        even = next_even(even, odd, rcon);
        keep(2 * pair + 2, even);
        for block in &mut blocks {
            *block = _mm_aesenc_si128(*block, even);
        }
        odd = next_odd(even, odd);
        keep(2 * pair + 3, odd);
        for block in &mut blocks {
            *block = _mm_aesenc_si128(*block, odd);
        }
    }
    even = next_even(even, odd, 0x40);
    keep(ROUND_KEYS - 1, even);
    for block in &mut blocks {
        *block = _mm_aesenclast_si128(*block, even);
    }
    blocks
}

/// SubWord(RotWord(last word of `odd`)) xor rcon, spread over `even`.
#[inline]
#[target_feature(enable = "aes,avx")]
fn next_even(even: __m128i, odd: __m128i, rcon: i32) -> __m128i {
    // Four copies of the last word, rotated: with equal columns ShiftRows has no effect.
    let rotate = _mm_set1_epi32(0x0c0f_0e0d);
    let word = _mm_aesenclast_si128(_mm_shuffle_epi8(odd, rotate), _mm_set1_epi32(rcon));
    _mm_xor_si128(prefix_xor(even), word)
}

/// SubWord(last word of `even`), spread over `odd`.
#[inline]
#[target_feature(enable = "aes,avx")]
fn next_odd(even: __m128i, odd: __m128i) -> __m128i {
    let word = _mm_aesenclast_si128(_mm_shuffle_epi32::<0xff>(even), zero());
    _mm_xor_si128(prefix_xor(odd), word)
}

/// Xors each word with all words before it.
#[inline]
#[target_feature(enable = "avx")]
fn prefix_xor(words: __m128i) -> __m128i {
    let words = _mm_xor_si128(words, _mm_slli_si128::<4>(words));
    _mm_xor_si128(words, _mm_slli_si128::<8>(words))
}

#[inline]
#[target_feature(enable = "aes,avx")]
fn encrypt<const N: usize>(round_keys: &[__m128i; ROUND_KEYS], mut blocks: [__m128i; N]) -> [__m128i; N] {
    let [first, middle @ .., last] = round_keys;
    for block in &mut blocks {
        *block = _mm_xor_si128(*block, *first);
    }
    for key in middle {
        for block in &mut blocks {
            *block = _mm_aesenc_si128(*block, *key);
        }
    }
    for block in &mut blocks {
        *block = _mm_aesenclast_si128(*block, *last);
    }
    blocks
}

/// Xors a text, no longer than the stream, with the stream.
#[inline]
#[target_feature(enable = "avx")]
fn xor_into(text: &mut [u8], stream: &[__m128i]) {
    let (whole, rest) = text.as_chunks_mut::<BLOCK>();
    for (block, key) in whole.iter_mut().zip(stream) {
        store(block, _mm_xor_si128(load(block), *key));
    }
    if !rest.is_empty() {
        let mut block = [0; BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        let text = _mm_xor_si128(load(&block), stream[whole.len()]);
        store(&mut block, text);
        rest.copy_from_slice(&block[..rest.len()]);
        block.zeroize();
    }
}

fn halves(key: &[u8; 32]) -> [__m128i; 2] {
    let [low, high] = key.as_chunks().0 else { unreachable!("32 = 2 * 16") };
    [load(low), load(high)]
}

// These only need SSE2, which every x86-64 CPU has.

#[inline]
#[target_feature(enable = "avx")]
fn zero() -> __m128i {
    _mm_setzero_si128()
}

/// Inner AES-256-GCM, for its own vectors.
#[cfg(test)]
pub(super) fn gcm_seal(
    _: HaveAesClmul,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
) -> [u8; 16] {
    // SAFETY: the token proves that the CPU has the features.
    unsafe { KeyStream::new(halves(key), counter(nonce), text.len()).seal(aad, text) }
}

#[cfg(test)]
pub(super) fn gcm_open(
    _: HaveAesClmul,
    key: &[u8; 32],
    nonce: &[u8; 12],
    aad: &[u8],
    text: &mut [u8],
    tag: &[u8; 16],
) -> bool {
    // SAFETY: as above.
    unsafe { KeyStream::new(halves(key), counter(nonce), text.len()).open(aad, text, tag) }
}

#[cfg(test)]
fn counter(nonce: &[u8; 12]) -> __m128i {
    let mut block = [0; BLOCK];
    block[..12].copy_from_slice(nonce);
    load(&block)
}
