//! Inversion modulo a prime of 256 bits in constant time, by division steps (Bernstein and Yang, "Fast constant-time
//! gcd computation and modular inversion", 2019), 590 of them in the variant that starts at delta = 1/2. Fifty-nine
//! at a time are computed from the lowest words, as a matrix that is then multiplied with the whole numbers, as in
//! libsecp256k1.

use super::element::Element;
use super::modulus::{Modulus, Number, opaque};
use zeroize::Zeroizing;

/// Number of division steps of one matrix, and number of matrices.
const STEPS: usize = 59;
const MATRICES: usize = 10;
/// Bits of a digit.
const BITS: usize = 62;
const MASK: u64 = (1 << BITS) - 1;

/// Number in digits of 62 bits, the lowest first; the highest has the sign.
type Signed = [i64; 5];

/// Effect of 59 division steps on f and g, times 2^62.
struct Matrix {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// Replaces numbers x R by R / x. All numbers, in all lanes, are inverted as one product (Montgomery's trick): a zero
/// makes all of them zero.
pub(super) fn invert_all(
    mut numbers: Vec<&mut Element>,
    modulus: &Modulus,
    multiply: impl Fn(&Element, &Element) -> Element,
) {
    let mut products = Zeroizing::new(Vec::with_capacity(numbers.len()));
    let mut product = Zeroizing::new(Element::broadcast(&modulus.one));
    for number in &numbers {
        products.push(*product);
        *product = multiply(&product, number);
    }
    let mut inverse = invert_lanes(&product, modulus, &multiply);
    for (number, product) in numbers.iter_mut().zip(products.iter()).rev() {
        let own = Zeroizing::new(multiply(&inverse, product));
        *inverse = multiply(&inverse, number);
        **number = *own;
    }
}

/// Computes 1 / x for each lane, from the inverse of the product of all.
fn invert_lanes(
    x: &Element,
    modulus: &Modulus,
    multiply: impl Fn(&Element, &Element) -> Element,
) -> Zeroizing<Element> {
    // The others of a lane are the next one, the two after it, and the four after these.
    let next = Zeroizing::new(x.rotated(1));
    let two = Zeroizing::new(multiply(x, &next));
    let next_two = Zeroizing::new(two.rotated(2));
    let four = Zeroizing::new(multiply(&two, &next_two));
    let next_four = Zeroizing::new(four.rotated(4));
    let all = Zeroizing::new(multiply(&four, &next_four));
    let inverse = Zeroizing::new(invert(&all.canonical(0, modulus), modulus));
    let others = Zeroizing::new(multiply(&multiply(&next, &next_two), &next_four));
    Zeroizing::new(multiply(&Element::broadcast(&inverse), &others))
}

/// Computes R^2 / number modulo the prime, which is R / x for x R. Returns 0 for 0.
fn invert(number: &Number, modulus: &Modulus) -> Number {
    let prime = signed(&modulus.words);
    let mut f = Zeroizing::new(prime);
    let mut g = Zeroizing::new(signed(number));
    let mut d = Zeroizing::new([0; 5]);
    let mut e = Zeroizing::new(signed(&modulus.r_squared));
    let mut zeta = -1;
    for _ in 0..MATRICES {
        let (matrix, next) = division_steps(zeta, f[0] as u64, g[0] as u64);
        zeta = next;
        matrix.multiply_modulo(&mut d, &mut e, &prime, modulus.inverse);
        matrix.multiply(&mut f, &mut g);
    }
    // Here f is 1 or -1, and d = f / number.
    unsigned(&normalised(&d, f[4] >> 63, &prime))
}

/// Computes division steps; zeta is -(delta + 1/2).
fn division_steps(mut zeta: i64, mut f: u64, mut g: u64) -> (Matrix, i64) {
    // The identity times 8: 59 doublings make it 2^62.
    let (mut u, mut v, mut q, mut r) = (8u64, 0u64, 0u64, 8u64);
    for _ in 0..STEPS {
        let negative = opaque((zeta >> 63) as u64);
        let odd = opaque((g & 1).wrapping_neg());
        let negated = |x: u64| (x ^ negative).wrapping_sub(negative);
        let (x, y, z) = (negated(f), negated(u), negated(v));
        g = g.wrapping_add(x & odd);
        q = q.wrapping_add(y & odd);
        r = r.wrapping_add(z & odd);
        let swap = negative & odd;
        zeta = (zeta ^ swap as i64) - 1;
        f = f.wrapping_add(g & swap);
        u = u.wrapping_add(q & swap);
        v = v.wrapping_add(r & swap);
        g >>= 1;
        u <<= 1;
        v <<= 1;
    }
    (Matrix { u: u as i64, v: v as i64, q: q as i64, r: r as i64 }, zeta)
}

impl Matrix {
    /// Computes f, g = (u f + v g, q f + r g) / 2^62, which is exact.
    fn multiply(&self, f: &mut Signed, g: &mut Signed) {
        let Self { u, v, q, r } = *self;
        let mut sum_f = (product(u, f[0]) + product(v, g[0])) >> BITS;
        let mut sum_g = (product(q, f[0]) + product(r, g[0])) >> BITS;
        for i in 1..5 {
            sum_f += product(u, f[i]) + product(v, g[i]);
            sum_g += product(q, f[i]) + product(r, g[i]);
            (f[i - 1], sum_f) = (low(sum_f), sum_f >> BITS);
            (g[i - 1], sum_g) = (low(sum_g), sum_g >> BITS);
        }
        (f[4], g[4]) = (sum_f as i64, sum_g as i64);
    }

    /// Like `multiply`, modulo the prime: adds multiples of it that make the division exact and keep d and e between
    /// -2 and 1 times the prime.
    fn multiply_modulo(&self, d: &mut Signed, e: &mut Signed, prime: &Signed, inverse: u64) {
        let Self { u, v, q, r } = *self;
        let (sign_d, sign_e) = (d[4] >> 63, e[4] >> 63);
        let mut multiple_d = (u & sign_d) + (v & sign_e);
        let mut multiple_e = (q & sign_d) + (r & sign_e);
        let mut sum_d = product(u, d[0]) + product(v, e[0]);
        let mut sum_e = product(q, d[0]) + product(r, e[0]);
        let excess = |sum: i128, multiple: i64| {
            (inverse.wrapping_mul(sum as u64).wrapping_add(multiple as u64) & MASK) as i64
        };
        multiple_d -= excess(sum_d, multiple_d);
        multiple_e -= excess(sum_e, multiple_e);
        sum_d = (sum_d + product(prime[0], multiple_d)) >> BITS;
        sum_e = (sum_e + product(prime[0], multiple_e)) >> BITS;
        for i in 1..5 {
            sum_d += product(u, d[i]) + product(v, e[i]) + product(prime[i], multiple_d);
            sum_e += product(q, d[i]) + product(r, e[i]) + product(prime[i], multiple_e);
            (d[i - 1], sum_d) = (low(sum_d), sum_d >> BITS);
            (e[i - 1], sum_e) = (low(sum_e), sum_e >> BITS);
        }
        (d[4], e[4]) = (sum_d as i64, sum_e as i64);
    }
}

/// Reduces a number between -2 and 1 times the prime, negated if `sign` is -1, to a number below the prime.
fn normalised(number: &Signed, sign: i64, prime: &Signed) -> Zeroizing<Signed> {
    let mut number = Zeroizing::new(*number);
    let add_if_negative = |number: &mut Signed| {
        let negative = opaque((number[4] >> 63) as u64) as i64;
        number.iter_mut().zip(prime).for_each(|(digit, prime)| *digit += prime & negative);
    };
    add_if_negative(&mut number);
    let sign = opaque(sign as u64) as i64;
    number.iter_mut().for_each(|digit| *digit = (*digit ^ sign) - sign);
    carry(&mut number);
    add_if_negative(&mut number);
    carry(&mut number);
    number
}

fn carry(number: &mut Signed) {
    for i in 0..4 {
        number[i + 1] += number[i] >> BITS;
        number[i] &= MASK as i64;
    }
}

fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

fn low(sum: i128) -> i64 {
    (sum as u64 & MASK) as i64
}

fn signed(number: &Number) -> Signed {
    let [a, b, c, d] = *number;
    [a, a >> 62 | b << 2, b >> 60 | c << 4, c >> 58 | d << 6, d >> 56].map(|digit| (digit & MASK) as i64)
}

fn unsigned(number: &Signed) -> Number {
    let [a, b, c, d, e] = number.map(|digit| digit as u64);
    [a | b << 62, b >> 2 | c << 60, c >> 4 | d << 58, d >> 6 | e << 56]
}

#[cfg(test)]
mod tests {
    use super::{super::modulus, invert};

    /// R^2 / (R^2 / x) = x.
    #[test]
    fn inverses_are_inverses() {
        for modulus in [modulus::P, modulus::N] {
            for seed in 1..200u64 {
                let word = |i: u64| (seed * 4 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (seed % 63);
                let number = modulus.reduced(&[0, 1, 2, 3].map(word), 0);
                let inverse = invert(&number, &modulus);
                assert_eq!(invert(&inverse, &modulus), number, "1 / (1 / x) is x");
            }
            assert_eq!(invert(&[0; 4], &modulus), [0; 4]);
            assert_eq!(invert(&modulus.r_squared, &modulus), [1, 0, 0, 0]);
        }
    }
}
