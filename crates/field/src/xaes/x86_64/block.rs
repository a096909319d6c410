//! AES blocks in memory and in registers. They only need SSE2, which every x86-64 CPU has.

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

pub(super) const BLOCK: usize = 16;

#[inline]
pub(super) fn load(bytes: &[u8; BLOCK]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes, and the instruction requires no alignment.
    unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) }
}

#[inline]
pub(super) fn store(bytes: &mut [u8; BLOCK], value: __m128i) {
    // SAFETY: the reference is to 16 writable bytes, and the instruction requires no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), value) }
}
