//! Public polynomials: the matrix A, sampled from its seed (FIPS 203, algorithm 7), and the client's vector t.
//!
//! All data in this module is public.

use super::ntt::{N, Q};
use super::vector::{VECTOR_BYTES, Vector};

/// Length in bytes of a block of SHAKE128, and of the three that most entries take.
pub(crate) const BLOCK: usize = 168;
pub(crate) const BLOCKS: usize = 3 * BLOCK;

/// Output of SHAKE128 for one entry, with room for a vector at the end.
pub(crate) type Stream = [u8; 9 * VECTOR_BYTES];

/// Length in bytes of 32 numbers of 12 bits, which unpack to a vector.
const PACKED: usize = 48;

/// Coefficients of one polynomial.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Entry {
    /// Coefficients of two bytes each, little-endian, with room for a vector at the end.
    coefficients: [u8; 2 * N + VECTOR_BYTES],
    /// Number of coefficients so far.
    len: usize,
}

impl Entry {
    pub(crate) const EMPTY: Self = Self { coefficients: [0; 2 * N + VECTOR_BYTES], len: 0 };

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns whether all coefficients are sampled. After three blocks, 99.2 % of all entries are complete.
    pub(crate) fn is_complete(&self) -> bool {
        self.len >= N
    }

    /// Returns the coefficients from 32 `i` on.
    #[inline(always)]
    pub(crate) fn vector<V: Vector>(&self, i: usize) -> V {
        V::load(&self.coefficients.as_chunks().0[i])
    }
}

/// Appends the numbers below q of the first `len` bytes, one or three blocks, until the entry is complete.
#[inline(always)]
pub(crate) fn sample<V: Vector>(bytes: &Stream, len: usize, entry: &mut Entry) {
    for at in (0..len).step_by(PACKED) {
        let candidates = V::unpack_12_bits(bytes[at..].first_chunk().expect("room for a vector"));
        let count = if len - at < PACKED { (len - at) * 2 / 3 } else { 32 };
        // Surplus coefficients go to the room at the end.
        let start = entry.len.min(N);
        let to = entry.coefficients[2 * start..].first_chunk_mut().expect("room for a vector");
        entry.len = start + candidates.store_reduced(count, to);
    }
}

/// Decodes one of the polynomials of t from the first bytes of a public key (FIPS 203, `ByteDecode_12`). Returns
/// whether all coefficients are below q, as section 7.2 requires.
#[inline(always)]
pub(crate) fn decode<V: Vector>(bytes: &[u8], entry: &mut Entry) -> bool {
    let mut differences = V::words(-1);
    for (i, to) in entry.coefficients.as_chunks_mut().0[..N / 32].iter_mut().enumerate() {
        let coefficients = V::unpack_12_bits(bytes[PACKED * i..].first_chunk().expect("room for a vector"));
        differences = differences.and(coefficients.minus(V::words(Q)));
        coefficients.store(to);
    }
    entry.len = N;
    let mut signs = [0; VECTOR_BYTES];
    differences.store(&mut signs);
    signs.as_chunks::<2>().0.iter().all(|[_, high]| high & 0x80 != 0)
}
