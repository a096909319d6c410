//! Number-theoretic transform of one polynomial, and the product of two (FIPS 203, algorithms 9 to 12).
//!
//! The layers whose coefficients are 128, 64 and 32 apart combine vectors. The others combine words of one vector: two
//! vectors are interleaved such that words to be combined are in the same place, and again after the layer, which
//! restores the order. Bounds are those of the transform of a batch.

use super::ntt::{Constant, N, Q_INVERSE, SCALE, ZETAS, backward, forward, reduce, times, times_constant};
use super::vector::{VECTOR_BYTES, Vector};

/// Number of vectors of a polynomial.
pub(super) const VECTORS: usize = 2 * N / VECTOR_BYTES;

/// Coefficients of one polynomial.
pub(super) type Polynomial<V> = [V; VECTORS];

/// Number of words of a vector.
const WORDS: usize = VECTOR_BYTES / 2;

/// Constant factors of the words of a vector.
#[derive(Clone, Copy)]
struct Constants {
    values: [u8; VECTOR_BYTES],
    times_q_inverse: [u8; VECTOR_BYTES],
}

impl Constants {
    const fn set(&mut self, word: usize, constant: Constant) {
        let (value, product) = (constant.value.to_le_bytes(), constant.times_q_inverse.to_le_bytes());
        (self.values[2 * word], self.values[2 * word + 1]) = (value[0], value[1]);
        (self.times_q_inverse[2 * word], self.times_q_inverse[2 * word + 1]) = (product[0], product[1]);
    }

    #[inline(always)]
    fn times<V: Vector>(&self, a: V) -> V {
        times(a, (V::load(&self.values), V::load(&self.times_q_inverse)))
    }
}

/// Constants of a layer, for each two vectors.
type Layer = [Constants; VECTORS / 2];

/// Constants by the index of a word's coefficient, after two vectors are interleaved in groups of `len` words.
const fn layer(len: usize, kind: Kind) -> Layer {
    let zero = Constants { values: [0; VECTOR_BYTES], times_q_inverse: [0; VECTOR_BYTES] };
    let mut layer = [zero; VECTORS / 2];
    let mut i = 0;
    while i < WORDS * layer.len() {
        let (pair, word) = (i / WORDS, i % WORDS);
        let (group, in_group) = (word / len, word % len);
        let coefficient = 2 * WORDS * pair + WORDS * (group % 2) + len * (group / 2 * 2) + in_group;
        let (blocks, block) = (128 / len, coefficient / (2 * len));
        let constant = match kind {
            Kind::Forward => ZETAS[blocks + block],
            Kind::Backward => ZETAS[2 * blocks - 1 - block],
            // Blocks of two coefficients: two of them share a constant, with opposite signs.
            Kind::Root => {
                let zeta = ZETAS[64 + block / 2];
                if block % 2 == 0 { zeta } else { zeta.negative() }
            }
        };
        layer[pair].set(word, constant);
        i += 1;
    }
    layer
}

#[derive(Clone, Copy)]
enum Kind {
    Forward,
    Backward,
    Root,
}

static FORWARD: [Layer; 4] =
    [layer(16, Kind::Forward), layer(8, Kind::Forward), layer(4, Kind::Forward), layer(2, Kind::Forward)];
static BACKWARD: [Layer; 4] =
    [layer(2, Kind::Backward), layer(4, Kind::Backward), layer(8, Kind::Backward), layer(16, Kind::Backward)];
static ROOTS: Layer = layer(1, Kind::Root);

/// Transforms coefficients from -2 to 2. The results are below 7 q + 3 in absolute value.
#[inline(always)]
pub(super) fn ntt<V: Vector>(r: &mut Polynomial<V>) {
    let [a, b, c, d, e, f, g, h] = r;
    forward(a, e, ZETAS[1]);
    forward(b, f, ZETAS[1]);
    forward(c, g, ZETAS[1]);
    forward(d, h, ZETAS[1]);
    forward(a, c, ZETAS[2]);
    forward(b, d, ZETAS[2]);
    forward(e, g, ZETAS[3]);
    forward(f, h, ZETAS[3]);
    forward(a, b, ZETAS[4]);
    forward(c, d, ZETAS[5]);
    forward(e, f, ZETAS[6]);
    forward(g, h, ZETAS[7]);
    for (i, pair) in r.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        forward_within::<V, 16>(pair, &FORWARD[0][i]);
        forward_within::<V, 8>(pair, &FORWARD[1][i]);
        forward_within::<V, 4>(pair, &FORWARD[2][i]);
        forward_within::<V, 2>(pair, &FORWARD[3][i]);
    }
}

#[inline(always)]
fn forward_within<V: Vector, const LEN: usize>(pair: &mut [V; 2], constants: &Constants) {
    let [a, b] = pair[0].interleave::<LEN>(pair[1]);
    let product = constants.times(b);
    *pair = a.plus(product).interleave::<LEN>(a.minus(product));
}

/// Inverse transform, times R. Coefficients are at most q / 2 + 1 in absolute value before, and below q after.
#[inline(always)]
pub(super) fn inverse_ntt<V: Vector>(r: &mut Polynomial<V>) {
    for (i, pair) in r.as_chunks_mut::<2>().0.iter_mut().enumerate() {
        backward_within::<V, 2>(pair, &BACKWARD[0][i]);
        backward_within::<V, 4>(pair, &BACKWARD[1][i]);
        backward_within::<V, 8>(pair, &BACKWARD[2][i]);
        backward_within::<V, 16>(pair, &BACKWARD[3][i]);
        *pair = pair.map(reduce);
    }
    let [a, b, c, d, e, f, g, h] = r;
    backward(a, b, ZETAS[7]);
    backward(c, d, ZETAS[6]);
    backward(e, f, ZETAS[5]);
    backward(g, h, ZETAS[4]);
    backward(a, c, ZETAS[3]);
    backward(b, d, ZETAS[3]);
    backward(e, g, ZETAS[2]);
    backward(f, h, ZETAS[2]);
    backward(a, e, ZETAS[1]);
    backward(b, f, ZETAS[1]);
    backward(c, g, ZETAS[1]);
    backward(d, h, ZETAS[1]);
    for x in r {
        *x = times_constant(*x, SCALE);
    }
}

#[inline(always)]
fn backward_within<V: Vector, const LEN: usize>(pair: &mut [V; 2], constants: &Constants) {
    let [a, b] = pair[0].interleave::<LEN>(pair[1]);
    *pair = a.plus(b).interleave::<LEN>(constants.times(b.minus(a)));
}

/// Transformed polynomial, prepared for multiplication: for each two vectors, the even coefficients, the odd ones, and
/// the odd ones times the root of their block; each with its product with 1 / q.
#[derive(Clone, Copy)]
pub(super) struct Factor<V>([[(V, V); 3]; VECTORS / 2]);

impl<V: Vector> Factor<V> {
    pub(super) fn zero() -> Self {
        Self([[(V::zero(), V::zero()); 3]; VECTORS / 2])
    }

    #[inline(always)]
    pub(super) fn new(y: &Polynomial<V>) -> Self {
        let mut factor = Self::zero();
        for ((pair, roots), to) in y.as_chunks::<2>().0.iter().zip(&ROOTS).zip(&mut factor.0) {
            let [even, odd] = pair[0].interleave::<1>(pair[1]);
            *to = [even, odd, roots.times(odd)].map(|x| (x, x.times_low(V::words(Q_INVERSE))));
        }
        factor
    }

    /// Returns the even coefficients of the product with two vectors of another polynomial, and the odd ones, divided
    /// by R; both are below 2 q in absolute value if those are below 4096.
    #[inline(always)]
    pub(super) fn times(&self, block: usize, [a, b]: [V; 2]) -> [V; 2] {
        let [own_even, own_odd, own_odd_times_root] = self.0[block];
        let [even, odd] = a.interleave::<1>(b);
        [
            times(even, own_even).plus(times(odd, own_odd_times_root)),
            times(even, own_odd).plus(times(odd, own_even)),
        ]
    }
}
