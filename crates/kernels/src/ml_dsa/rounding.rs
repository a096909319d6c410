//! Decomposition of coefficients, and hints (FIPS 204, section 7.4).

use super::parameters::Gamma2;
use super::polynomial::{BLOCK, Block, N, Polynomial, Q};
use super::vector::Vector;

/// High parts of the coefficients of a polynomial, or one bit for each.
pub(crate) type Bytes = [u8; N];

/// Splits coefficients between -q and q: r = r1 2 gamma2 + r0 (algorithm 36).
#[inline(always)]
pub(crate) fn decompose<V: Vector>(gamma2: Gamma2, r: &Polynomial, low: &mut Polynomial, high: &mut Bytes) {
    let q = V::words(Q);
    let blocks = r.0.iter().zip(&mut low.0).zip(high.as_chunks_mut::<BLOCK>().0);
    for ((r, low), high) in blocks {
        let r = V::load(r);
        let r = r.plus(r.shift_right::<31>().and(q));
        let r1 = high_part(gamma2, r);
        let r0 = r.minus(r1.times_low(V::words(2 * gamma2.value())));
        // The part below 0 of the last range.
        let above = V::words((Q - 1) / 2).minus(r0).shift_right::<31>();
        r0.minus(above.and(q)).store(low);
        *high = r1.to_bytes();
    }
}

/// Returns the quotient of r, from 0 to q - 1, and 2 gamma2, rounded to the nearest; 0 in place of the last one.
#[inline(always)]
fn high_part<V: Vector>(gamma2: Gamma2, r: V) -> V {
    // 2 gamma2 is a multiple of 128. The tests compare all r.
    let r = r.plus(V::words(127)).shift_right::<7>();
    match gamma2 {
        Gamma2::Of88 => {
            let high = r.times_low(V::words(11_275)).plus(V::words(1 << 23)).shift_right::<24>();
            high.xor(V::words(43).minus(high).shift_right::<31>().and(high))
        }
        Gamma2::Of32 => {
            let high = r.times_low(V::words(1025)).plus(V::words(1 << 21)).shift_right::<22>();
            high.and(V::words(15))
        }
    }
}

/// Computes a bit for each coefficient whose high part is not the given one (algorithm 39). `low` is what was added to
/// the multiple of 2 gamma2 with that high part. Returns the number of bits set.
#[inline(always)]
pub(crate) fn make_hints<V: Vector>(
    gamma2: Gamma2,
    low: &Polynomial,
    high: &Bytes,
    hints: &mut Bytes,
) -> i32 {
    let (gamma2, zero, one) = (V::words(gamma2.value()), V::words(0), V::words(1));
    let mut counts = zero;
    let blocks = low.0.iter().zip(high.as_chunks::<BLOCK>().0).zip(hints.as_chunks_mut::<BLOCK>().0);
    for ((low, high), hints) in blocks {
        let low = V::load(low);
        let high = V::from_bytes(&high.map(|byte| byte as i8));
        let above = gamma2.minus(low).shift_right::<31>();
        let distance = low.plus(gamma2);
        let below = distance.shift_right::<31>();
        // At -gamma2, the high part is the next lower one, except at the last range, which joins the first.
        let not_zero = distance.or(zero.minus(distance)).shift_right::<31>();
        let at_edge = zero.minus(high).shift_right::<31>().and(not_zero.xor(V::words(-1)));
        let hint = above.or(below).or(at_edge).and(one);
        counts = counts.plus(hint);
        *hints = hint.to_bytes();
    }
    let mut block = Block([0; BLOCK]);
    counts.store(&mut block);
    block.0.iter().sum()
}

/// Returns the high part after a hint (algorithm 40).
pub(crate) fn use_hint(gamma2: Gamma2, low: i32, high: u8) -> u8 {
    let highs = gamma2.highs();
    if low > 0 { (high + 1) % highs } else { (high + highs - 1) % highs }
}

/// Returns the largest absolute value.
#[inline(always)]
pub(crate) fn largest<V: Vector>(polynomial: &Polynomial) -> i32 {
    let mut largest = V::words(0);
    for block in &polynomial.0 {
        largest = largest.maximum(V::load(block).absolute());
    }
    largest.largest()
}

/// Computes the sum of two polynomials in place. Returns the largest absolute value of the second.
#[inline(always)]
pub(crate) fn add<V: Vector>(sum: &mut Polynomial, other: &Polynomial) -> i32 {
    let mut largest = V::words(0);
    for (sum, other) in sum.0.iter_mut().zip(&other.0) {
        let other = V::load(other);
        V::load(sum).plus(other).store(sum);
        largest = largest.maximum(other.absolute());
    }
    largest.largest()
}

/// Computes a - b. Coefficients are below q in absolute value, before and after.
#[inline(always)]
pub(crate) fn subtract<V: Vector>(a: &Polynomial, b: &Polynomial, difference: &mut Polynomial) {
    let q = V::words(Q);
    for ((a, b), difference) in a.0.iter().zip(&b.0).zip(&mut difference.0) {
        let x = V::load(a).minus(V::load(b));
        let x = x.plus(x.shift_right::<31>().and(q));
        x.minus(V::words(Q - 1).minus(x).shift_right::<31>().and(q)).store(difference);
    }
}

/// Returns bits in which coefficients of two polynomials differ: zero for equal ones.
#[inline(always)]
pub(crate) fn differences<V: Vector>(a: &Polynomial, b: &Polynomial) -> i32 {
    let mut differences = V::words(0);
    for (a, b) in a.0.iter().zip(&b.0) {
        differences = differences.or(V::load(a).xor(V::load(b)));
    }
    let mut block = Block([0; BLOCK]);
    differences.store(&mut block);
    block.0.iter().fold(0, |all, word| all | word)
}
