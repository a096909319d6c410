//! Polynomials modulo q and x^256 + 1, 32 at once: the number-theoretic transform (FIPS 203, algorithms 9 to 12).
//!
//! Vector k holds the coefficient k of 32 polynomials, one in each word, so no data moves within a vector. Numbers
//! are signed, and multiplied by Montgomery's method, with R = 2^16; the bounds are in `docs/kernels/ml-kem.md`.

use super::vector::Vector;

/// FIPS 203, section 2.4.
pub(crate) const Q: i16 = 3329;
/// Number of coefficients of a polynomial.
pub(crate) const N: usize = 256;

/// Coefficients of 32 polynomials.
pub(crate) type Polynomials<V> = [V; N];

/// 1 / q modulo R.
pub(super) const Q_INVERSE: i16 = inverse_of_q();
/// R^2 / 128 modulo q: compensates for the seven halvings and for the factors 1 / R of products.
pub(super) const SCALE: Constant = Constant::new(power(2, 32) * power(128, Q as i64 - 2) % Q as i64);

/// Constant factor, with its product for Montgomery's multiplication.
#[derive(Clone, Copy)]
pub(super) struct Constant {
    pub(super) value: i16,
    pub(super) times_q_inverse: i16,
}

impl Constant {
    /// Creates a constant from a number from 0 to q - 1, which is reduced to the nearest one to 0.
    const fn new(number: i64) -> Self {
        let value = if number > Q as i64 / 2 { number - Q as i64 } else { number } as i16;
        Self { value, times_q_inverse: value.wrapping_mul(Q_INVERSE) }
    }

    pub(super) const fn negative(self) -> Self {
        let multiple = if self.value > 0 { Q as i64 } else { 0 };
        Self::new(multiple - self.value as i64)
    }
}

/// Constants 17^(k, its seven bits reversed) R: zeta^BitRev7(k) of FIPS 203, in Montgomery form.
pub(super) const ZETAS: [Constant; 128] = {
    let mut zetas = [Constant::new(0); 128];
    let mut k = 0;
    while k < 128 {
        let reversed = ((k as u8).reverse_bits() >> 1) as i64;
        zetas[k] = Constant::new(power(17, reversed) * power(2, 16) % Q as i64);
        k += 1;
    }
    zetas
};

const fn power(base: i64, exponent: i64) -> i64 {
    let (mut product, mut i) = (1, 0);
    while i < exponent {
        product = product * base % Q as i64;
        i += 1;
    }
    product
}

const fn inverse_of_q() -> i16 {
    // Each step doubles the number of right bits: 1, 2, 4, 8, 16.
    let (mut inverse, mut i) = (1i16, 0);
    while i < 4 {
        inverse = inverse.wrapping_mul(2i16.wrapping_sub(Q.wrapping_mul(inverse)));
        i += 1;
    }
    inverse
}

/// Transforms coefficients from -2 to 2. The results are below 7 q + 3 in absolute value.
#[inline(always)]
pub(crate) fn ntt<V: Vector>(r: &mut Polynomials<V>) {
    for first in 0..32 {
        forward_three(r, first, 32, 1);
    }
    for block in 0..8 {
        for first in 0..4 {
            forward_three(r, 32 * block + first, 4, 8 + block);
        }
    }
    for (block, r) in r.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let [a, b, c, d] = r;
        forward(a, c, ZETAS[64 + block]);
        forward(b, d, ZETAS[64 + block]);
    }
}

/// Computes three layers, on eight coefficients at a distance; `zeta` is the index of the first layer's constant.
#[inline(always)]
fn forward_three<V: Vector>(r: &mut Polynomials<V>, first: usize, distance: usize, zeta: usize) {
    let mut x = [V::zero(); 8];
    for (i, x) in x.iter_mut().enumerate() {
        *x = r[first + distance * i];
    }
    let [a, b, c, d, e, f, g, h] = &mut x;
    forward(a, e, ZETAS[zeta]);
    forward(b, f, ZETAS[zeta]);
    forward(c, g, ZETAS[zeta]);
    forward(d, h, ZETAS[zeta]);
    forward(a, c, ZETAS[2 * zeta]);
    forward(b, d, ZETAS[2 * zeta]);
    forward(e, g, ZETAS[2 * zeta + 1]);
    forward(f, h, ZETAS[2 * zeta + 1]);
    forward(a, b, ZETAS[4 * zeta]);
    forward(c, d, ZETAS[4 * zeta + 1]);
    forward(e, f, ZETAS[4 * zeta + 2]);
    forward(g, h, ZETAS[4 * zeta + 3]);
    for (i, x) in x.into_iter().enumerate() {
        r[first + distance * i] = x;
    }
}

/// Cooley and Tukey's butterfly.
#[inline(always)]
pub(super) fn forward<V: Vector>(a: &mut V, b: &mut V, zeta: Constant) {
    let product = times_constant(*b, zeta);
    (*a, *b) = (a.plus(product), a.minus(product));
}

/// Inverse transform, times R. Coefficients are at most q / 2 + 1 in absolute value before, and below q after.
#[inline(always)]
pub(crate) fn inverse_ntt<V: Vector>(r: &mut Polynomials<V>) {
    for (block, r) in r.as_chunks_mut::<4>().0.iter_mut().enumerate() {
        let [a, b, c, d] = r;
        backward(a, c, ZETAS[127 - block]);
        backward(b, d, ZETAS[127 - block]);
    }
    for block in 0..8 {
        for first in 0..4 {
            backward_three(r, 32 * block + first, 4, 15 - block);
        }
    }
    for first in 0..32 {
        backward_three(r, first, 32, 1);
    }
}

/// Computes three layers, on eight coefficients at a distance; `zeta` is the index of the last layer's constant. The
/// very last layer is scaled, others are reduced.
#[inline(always)]
fn backward_three<V: Vector>(r: &mut Polynomials<V>, first: usize, distance: usize, zeta: usize) {
    let mut x = [V::zero(); 8];
    for (i, x) in x.iter_mut().enumerate() {
        *x = r[first + distance * i];
    }
    let [a, b, c, d, e, f, g, h] = &mut x;
    backward(a, b, ZETAS[4 * zeta + 3]);
    backward(c, d, ZETAS[4 * zeta + 2]);
    backward(e, f, ZETAS[4 * zeta + 1]);
    backward(g, h, ZETAS[4 * zeta]);
    backward(a, c, ZETAS[2 * zeta + 1]);
    backward(b, d, ZETAS[2 * zeta + 1]);
    backward(e, g, ZETAS[2 * zeta]);
    backward(f, h, ZETAS[2 * zeta]);
    backward(a, e, ZETAS[zeta]);
    backward(b, f, ZETAS[zeta]);
    backward(c, g, ZETAS[zeta]);
    backward(d, h, ZETAS[zeta]);
    for (i, x) in x.into_iter().enumerate() {
        r[first + distance * i] = if zeta == 1 { times_constant(x, SCALE) } else { reduce(x) };
    }
}

/// Gentleman and Sande's butterfly. The inverses of the constants are the constants in reverse order, negated.
#[inline(always)]
pub(super) fn backward<V: Vector>(a: &mut V, b: &mut V, zeta: Constant) {
    let difference = b.minus(*a);
    *a = a.plus(*b);
    *b = times_constant(difference, zeta);
}

/// Coefficients 2 i and 2 i + 1 of transformed polynomials, prepared for multiplication (FIPS 203, algorithm 12).
#[derive(Clone, Copy)]
pub(crate) struct Pair<V> {
    even: V,
    odd: V,
    odd_times_root: V,
    even_times_q_inverse: V,
    odd_times_q_inverse: V,
    odd_times_root_times_q_inverse: V,
}

impl<V: Vector> Pair<V> {
    #[inline(always)]
    pub(crate) fn new(even: V, odd: V, i: usize) -> Self {
        let product = times_constant(odd, ZETAS[64 + i / 2]);
        let odd_times_root = if i.is_multiple_of(2) { product } else { V::zero().minus(product) };
        let q_inverse = V::words(Q_INVERSE);
        Self {
            even,
            odd,
            odd_times_root,
            even_times_q_inverse: even.times_low(q_inverse),
            odd_times_q_inverse: odd.times_low(q_inverse),
            odd_times_root_times_q_inverse: odd_times_root.times_low(q_inverse),
        }
    }

    /// Returns the pair of the polynomials in the words J, in all four words of a lane.
    #[inline(always)]
    pub(crate) fn broadcast<const J: usize>(&self) -> Self {
        Self {
            even: self.even.broadcast_word::<J>(),
            odd: self.odd.broadcast_word::<J>(),
            odd_times_root: self.odd_times_root.broadcast_word::<J>(),
            even_times_q_inverse: self.even_times_q_inverse.broadcast_word::<J>(),
            odd_times_q_inverse: self.odd_times_q_inverse.broadcast_word::<J>(),
            odd_times_root_times_q_inverse: self.odd_times_root_times_q_inverse.broadcast_word::<J>(),
        }
    }

    /// Returns the product with other polynomials' coefficients, divided by R; both are below 2 q in absolute value
    /// if those are below 4096.
    #[inline(always)]
    pub(crate) fn times(&self, even: V, odd: V) -> [V; 2] {
        let root = (self.odd_times_root, self.odd_times_root_times_q_inverse);
        let (own_even, own_odd) =
            ((self.even, self.even_times_q_inverse), (self.odd, self.odd_times_q_inverse));
        [times(even, own_even).plus(times(odd, root)), times(even, own_odd).plus(times(odd, own_even))]
    }
}

/// Computes a b / R modulo q, for a factor b and its product with 1 / q: below |a b| / R + q / 2 in absolute value.
#[inline(always)]
pub(super) fn times<V: Vector>(a: V, (b, b_times_q_inverse): (V, V)) -> V {
    let multiple_of_q = a.times_low(b_times_q_inverse).times_high(V::words(Q));
    a.times_high(b).minus(multiple_of_q)
}

#[inline(always)]
pub(super) fn times_constant<V: Vector>(a: V, constant: Constant) -> V {
    times(a, (V::words(constant.value), V::words(constant.times_q_inverse)))
}

/// Reduces modulo q to the number nearest to 0, or its neighbour (Barrett): at most q / 2 + 1 in absolute value.
#[inline(always)]
pub(crate) fn reduce<V: Vector>(a: V) -> V {
    // 2^26 / q, rounded.
    let quotient = a.times_high(V::words(20159)).plus(V::words(1 << 9)).shift_right_signed::<10>();
    a.minus(quotient.times_low(V::words(Q)))
}
