//! Indices of AVX-512's permutations, for the vectors of ML-KEM.

use crate::ml_kem::VECTOR_BYTES;

/// Permutation of bytes to words: two for each number of 12 bits, one of them shared with the neighbour.
pub(super) const TWO_BYTES_EACH: [u8; VECTOR_BYTES] = {
    let (mut from, mut i) = ([0; VECTOR_BYTES], 0);
    while i < VECTOR_BYTES {
        from[i] = (i / 4 * 3 + [0, 1, 1, 2][i % 4]) as u8;
        i += 1;
    }
    from
};

/// Permutation of word I of a lane to all words of the lane; counted within 16 bytes, as the instruction does.
pub(super) const fn word_of_lane(i: usize) -> [u8; VECTOR_BYTES] {
    let (mut from, mut at) = ([0; VECTOR_BYTES], 0);
    while at < VECTOR_BYTES {
        from[at] = (at % 16 / 8 * 8 + 2 * i + at % 2) as u8;
        at += 1;
    }
    from
}

/// Permutation of words: four times each of the first eight.
pub(super) const FOUR_WORDS_EACH: [u8; VECTOR_BYTES] = {
    let (mut from, mut i) = ([0; VECTOR_BYTES], 0);
    while i < VECTOR_BYTES {
        from[i] = if i % 2 == 0 { (i / 8) as u8 } else { 0 };
        i += 1;
    }
    from
};

/// Permutation of bytes to the lowest `count` bytes of each lane, one lane after the other.
pub(super) const fn lowest_bytes(count: usize) -> [u8; VECTOR_BYTES] {
    let (mut from, mut i) = ([0; VECTOR_BYTES], 0);
    while i < 8 * count {
        from[i] = (i / count * 8 + i % count) as u8;
        i += 1;
    }
    from
}

/// Permutation of lanes of two vectors to quarters of both, alternately: even ones, or odd ones.
pub(super) const fn quarters(odd: u8) -> [u8; VECTOR_BYTES] {
    let (mut from, mut lane) = ([0; VECTOR_BYTES], 0);
    while lane < 8 {
        let (quarter, in_quarter) = (lane as u8 / 2, lane as u8 % 2);
        from[8 * lane] = 8 * (quarter % 2) + 2 * (quarter / 2 * 2 + odd) + in_quarter;
        lane += 1;
    }
    from
}
