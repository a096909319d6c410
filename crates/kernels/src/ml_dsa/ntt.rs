//! Number-theoretic transform (FIPS 204, algorithms 41 and 42), and products of transforms.
//!
//! A polynomial has 16 blocks of 16 coefficients. Four layers combine blocks; after a transposition, four more do, with
//! a factor of its own for each word. The transform stays transposed, because the order of its numbers has no meaning.
//!
//! Numbers are signed, and multiplied by Montgomery's method, with R = 2^32; the bounds are in
//! `docs/kernels/ml-dsa.md`.

use super::polynomial::{BLOCK, BLOCKS, Block, Polynomial, Q};
use super::vector::Vector;

/// 1 / q modulo R.
pub(crate) const Q_INVERSE: i32 = inverse_of_q();
/// R^2 / 256 modulo q: compensates for the eight doublings and for the factors 1 / R of products.
const SCALE: i32 = nearest(power(2, 64) * power(256, Q as i64 - 2) % Q as i64);

/// 1 / R modulo q.
const R_INVERSE: i64 = power(power(2, 32), Q as i64 - 2);

/// Factors of four layers: those of layer n from 2^n on.
struct Factors {
    values: [Block; BLOCKS],
    times_q_inverse: [Block; BLOCKS],
}

/// Factors for words that are all alike, and for transposed ones; of the transform, and of the inverse one.
static FIRST: Factors = Factors::new(false, false);
static SECOND: Factors = Factors::new(true, false);
static INVERSE_SECOND: Factors = Factors::new(true, true);
static INVERSE_FIRST: Factors = Factors::new(false, true);

impl Factors {
    const fn new(transposed: bool, inverse: bool) -> Self {
        let mut factors =
            Self { values: [Block([0; BLOCK]); BLOCKS], times_q_inverse: [Block([0; BLOCK]); BLOCKS] };
        let mut i = 1;
        while i < BLOCKS {
            let first = 1 << i.ilog2();
            let mut word = 0;
            while word < BLOCK {
                let mut layer = first;
                let mut zeta = i;
                if transposed {
                    layer = BLOCK * first;
                    zeta = layer + word * first + i - first;
                }
                // The inverses of a layer's factors are its factors in reverse order, negated.
                let mut value = zeta_of(if inverse { 3 * layer - 1 - zeta } else { zeta });
                if inverse && layer == 1 {
                    value =
                        nearest((value as i64 * SCALE as i64 % Q as i64 * R_INVERSE).rem_euclid(Q as i64));
                }
                factors.values[i].0[word] = value;
                factors.times_q_inverse[i].0[word] = value.wrapping_mul(Q_INVERSE);
                word += 1;
            }
            i += 1;
        }
        factors
    }

    #[inline(always)]
    fn get<V: Vector>(&self, i: usize) -> (V, V) {
        (V::load(&self.values[i]), V::load(&self.times_q_inverse[i]))
    }
}

/// Returns 1753^(k, its eight bits reversed) R: zetas[k] of FIPS 204, appendix B, in Montgomery form.
const fn zeta_of(k: usize) -> i32 {
    let reversed = (k as u8).reverse_bits() as i64;
    nearest(power(1753, reversed) * power(2, 32) % Q as i64)
}

const fn nearest(number: i64) -> i32 {
    (if number > Q as i64 / 2 { number - Q as i64 } else { number }) as i32
}

const fn power(base: i64, exponent: i64) -> i64 {
    let (mut product, mut square, mut bits) = (1, base, exponent);
    while bits > 0 {
        if bits & 1 == 1 {
            product = product * square % Q as i64;
        }
        square = square * square % Q as i64;
        bits >>= 1;
    }
    product
}

const fn inverse_of_q() -> i32 {
    // Each step doubles the number of right bits: 1, 2, 4, 8, 16, 32.
    let (mut inverse, mut i) = (1i32, 0);
    while i < 5 {
        inverse = inverse.wrapping_mul(2i32.wrapping_sub(Q.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

/// Butterflies of Cooley and Tukey on pairs of blocks.
macro_rules! forward {
    ($x:ident, $factor:expr, $($a:literal $b:literal),*) => {
        let (factor, times_q_inverse) = $factor;
        $(
            let product = $x[$b].times(factor, times_q_inverse);
            $x[$b] = $x[$a].minus(product);
            $x[$a] = $x[$a].plus(product);
        )*
    };
}

/// Butterflies of Gentleman and Sande on pairs of blocks.
macro_rules! backward {
    ($x:ident, $factor:expr, $($a:literal $b:literal),*) => {
        let (factor, times_q_inverse) = $factor;
        $(
            let difference = $x[$b].minus($x[$a]);
            $x[$a] = $x[$a].plus($x[$b]);
            $x[$b] = difference.times(factor, times_q_inverse);
        )*
    };
}

/// Transforms coefficients below q in absolute value. The results are below 9 q.
#[inline(always)]
pub(crate) fn ntt<V: Vector>(polynomial: &mut Polynomial) {
    let x = transform(load::<V>(polynomial));
    store(x, polynomial);
}

/// Computes the transform of a polynomial in another place.
#[inline(always)]
pub(crate) fn ntt_of<V: Vector>(polynomial: &Polynomial, to: &mut Polynomial) {
    store(transform(load::<V>(polynomial)), to);
}

#[inline(always)]
fn transform<V: Vector>(mut x: [V; BLOCKS]) -> [V; BLOCKS] {
    forward_four(&mut x, &FIRST);
    x = V::transpose(x);
    forward_four(&mut x, &SECOND);
    x
}

/// Inverse transform, times R. Coefficients are below q in absolute value, before and after.
#[inline(always)]
pub(crate) fn inverse_ntt<V: Vector>(polynomial: &mut Polynomial) {
    let mut x = load::<V>(polynomial);
    backward_four(&mut x, &INVERSE_SECOND);
    x = V::transpose(x);
    backward_four(&mut x, &INVERSE_FIRST);
    // The last layer's factor scales the upper half.
    let (scale, times_q_inverse) = (V::words(SCALE), V::words(SCALE.wrapping_mul(Q_INVERSE)));
    for x in &mut x[..BLOCKS / 2] {
        *x = x.times(scale, times_q_inverse);
    }
    store(x, polynomial);
}

#[inline(always)]
fn load<V: Vector>(polynomial: &Polynomial) -> [V; BLOCKS] {
    let mut x = [V::words(0); BLOCKS];
    for (x, block) in x.iter_mut().zip(&polynomial.0) {
        *x = V::load(block);
    }
    x
}

#[inline(always)]
fn store<V: Vector>(x: [V; BLOCKS], polynomial: &mut Polynomial) {
    for (x, block) in x.into_iter().zip(&mut polynomial.0) {
        x.store(block);
    }
}

#[inline(always)]
fn forward_four<V: Vector>(x: &mut [V; BLOCKS], factors: &Factors) {
    forward!(x, factors.get::<V>(1), 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
    forward!(x, factors.get::<V>(2), 0 4, 1 5, 2 6, 3 7);
    forward!(x, factors.get::<V>(3), 8 12, 9 13, 10 14, 11 15);
    forward!(x, factors.get::<V>(4), 0 2, 1 3);
    forward!(x, factors.get::<V>(5), 4 6, 5 7);
    forward!(x, factors.get::<V>(6), 8 10, 9 11);
    forward!(x, factors.get::<V>(7), 12 14, 13 15);
    forward!(x, factors.get::<V>(8), 0 1);
    forward!(x, factors.get::<V>(9), 2 3);
    forward!(x, factors.get::<V>(10), 4 5);
    forward!(x, factors.get::<V>(11), 6 7);
    forward!(x, factors.get::<V>(12), 8 9);
    forward!(x, factors.get::<V>(13), 10 11);
    forward!(x, factors.get::<V>(14), 12 13);
    forward!(x, factors.get::<V>(15), 14 15);
}

#[inline(always)]
fn backward_four<V: Vector>(x: &mut [V; BLOCKS], factors: &Factors) {
    backward!(x, factors.get::<V>(8), 0 1);
    backward!(x, factors.get::<V>(9), 2 3);
    backward!(x, factors.get::<V>(10), 4 5);
    backward!(x, factors.get::<V>(11), 6 7);
    backward!(x, factors.get::<V>(12), 8 9);
    backward!(x, factors.get::<V>(13), 10 11);
    backward!(x, factors.get::<V>(14), 12 13);
    backward!(x, factors.get::<V>(15), 14 15);
    backward!(x, factors.get::<V>(4), 0 2, 1 3);
    backward!(x, factors.get::<V>(5), 4 6, 5 7);
    backward!(x, factors.get::<V>(6), 8 10, 9 11);
    backward!(x, factors.get::<V>(7), 12 14, 13 15);
    backward!(x, factors.get::<V>(2), 0 4, 1 5, 2 6, 3 7);
    backward!(x, factors.get::<V>(3), 8 12, 9 13, 10 14, 11 15);
    backward!(x, factors.get::<V>(1), 0 8, 1 9, 2 10, 3 11, 4 12, 5 13, 6 14, 7 15);
}

/// Matrix of transforms. Of each block, in turn, there are those of all entries, row by row.
pub(crate) struct Matrix {
    blocks: Box<[Block]>,
    rows: usize,
    columns: usize,
}

impl Matrix {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self { blocks: vec![Block([0; BLOCK]); BLOCKS * rows * columns].into_boxed_slice(), rows, columns }
    }

    pub(crate) fn set(&mut self, row: usize, column: usize, entry: &Polynomial) {
        let entries = self.rows * self.columns;
        for (i, block) in entry.0.iter().enumerate() {
            self.blocks[entries * i + self.columns * row + column] = *block;
        }
    }

    pub(crate) fn get(&self, row: usize, column: usize) -> Polynomial {
        let entries = self.rows * self.columns;
        let block = |i: usize| self.blocks[entries * i + self.columns * row + column];
        Polynomial(std::array::from_fn(block))
    }

    /// Bytes of memory.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.blocks)
    }
}

/// Multiplies a matrix by a vector, and divides by R. The vector's numbers are below 9 q in absolute value, the
/// matrix's at most q / 2, and the results below q. The vector may have fewer entries than the matrix columns.
#[inline(always)]
pub(crate) fn multiply_matrix<V: Vector>(
    matrix: &Matrix,
    vector: &[Polynomial],
    products: &mut [Polynomial],
) {
    match vector.len() {
        4 => multiply_columns::<V, 4>(matrix, vector, products),
        5 => multiply_columns::<V, 5>(matrix, vector, products),
        6 => multiply_columns::<V, 6>(matrix, vector, products),
        7 => multiply_columns::<V, 7>(matrix, vector, products),
        8 => multiply_columns::<V, 8>(matrix, vector, products),
        _ => unreachable!("ML-DSA has 4, 5 or 7 columns, and one more for verification"),
    }
}

#[inline(always)]
fn multiply_columns<V: Vector, const COLUMNS: usize>(
    matrix: &Matrix,
    vector: &[Polynomial],
    products: &mut [Polynomial],
) {
    let blocks = matrix.blocks.chunks_exact(matrix.rows * matrix.columns);
    for (i, entries) in blocks.enumerate() {
        let mut factors = [V::words(0); COLUMNS];
        for (factor, polynomial) in factors.iter_mut().zip(vector) {
            *factor = V::load(&polynomial.0[i]);
        }
        for (row, product) in entries.chunks_exact(matrix.columns).zip(&mut *products) {
            let mut sums = [V::words(0); 2];
            for (entry, factor) in row.iter().zip(&factors) {
                sums = V::add_products(sums, V::load(entry), *factor);
            }
            V::reduce(sums).store(&mut product.0[i]);
        }
    }
}

/// Multiplies transforms, the first below 9 q in absolute value and the second at most q / 2, and divides by R. The
/// result is below q.
#[inline(always)]
pub(crate) fn multiply<V: Vector>(a: &Polynomial, b: &Polynomial, product: &mut Polynomial) {
    for ((a, b), product) in a.0.iter().zip(&b.0).zip(&mut product.0) {
        V::reduce(V::add_products([V::words(0); 2], V::load(a), V::load(b))).store(product);
    }
}
