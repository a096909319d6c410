//! Small secret polynomials: SamplePolyCBD_2 (FIPS 203, algorithm 8), and the message as one of them.

use super::keccak::State;
use super::ntt::{N, Polynomials, Q};
use super::vector::Vector;

/// Samples four polynomials for each lane, from the four states' first 128 bytes: word i of a lane gets those of
/// state i.
#[inline(always)]
pub(crate) fn sample_small<V: Vector>(states: &[State<V>; 4], to: &mut Polynomials<V>) {
    for w in 0..N / 16 {
        // Four bits of a state form a coefficient.
        let [a, b, c, d] = states;
        let rows = [differences(a[w]), differences(b[w]), differences(c[w]), differences(d[w])];
        let words = V::transpose_words(rows);
        for (word, to) in words.into_iter().zip(to[16 * w..][..16].as_chunks_mut::<4>().0) {
            *to = [
                coefficient(word),
                coefficient(word.shift_right::<4>()),
                coefficient(word.shift_right::<8>()),
                coefficient(word.shift_right::<12>()),
            ];
        }
    }
}

/// Returns the coefficient in the lowest four bits of each word.
#[inline(always)]
fn coefficient<V: Vector>(word: V) -> V {
    word.and(V::words(15)).minus(V::words(4))
}

/// Computes, in each four bits, the sum of the lower two minus that of the upper two, plus 4.
#[inline(always)]
pub(super) fn differences<V: Vector>(bits: V) -> V {
    let (ones, twos) = (V::lanes(0x5555_5555_5555_5555), V::lanes(0x3333_3333_3333_3333));
    let sums = bits.and(ones).plus(bits.shift_right::<1>().and(ones));
    let positive = sums.and(twos).plus(V::lanes(0x4444_4444_4444_4444));
    // At least 2 in each four bits, so that no borrow crosses them.
    positive.minus(sums.shift_right::<2>().and(twos))
}

/// Adds Decompress_1 of the message to the polynomials in the lanes' highest words (FIPS 203, algorithm 14, line 20).
#[inline(always)]
pub(crate) fn add_message<V: Vector>(message: &[V; 4], to: &mut Polynomials<V>) {
    // Rounded q / 2, in the highest word.
    let half = V::lanes((Q as u64).div_ceil(2) << 48);
    for (word, to) in message.iter().zip(to.as_chunks_mut::<64>().0) {
        for (bit, to) in to.iter_mut().enumerate() {
            let chosen = word.shift_lanes_left(63 - bit as u32).signs_of_lanes();
            *to = to.plus(chosen.and(half));
        }
    }
}
