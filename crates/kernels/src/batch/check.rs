//! Fault check: a result s is released only if s^e = c mod n.
//!
//! A single wrong bit in one half of the computation yields a result from which n can be factored (Boneh, DeMillo,
//! Lipton 1997). The check runs for all lanes at once and costs a few per cent.

use super::arithmetic::{Arithmetic, Ring, Vector};
use super::lane::Lane;
use crate::secrecy;
use quadrille_rsa_numbers::words::{self, Secret};

/// Number of table entries for the check: s as it is, and in Montgomery form.
pub(super) const POWERS: usize = 2;

/// Returns which of the results, one for each filled lane, are right.
///
/// Exponents are public and may differ from lane to lane: every lane takes the squarings of the longest, and
/// a lane whose bit is zero multiplies by one.
pub(super) fn check<A: Arithmetic>(
    arithmetic: A,
    ring: &mut Ring<A>,
    lanes: &[Lane<'_, A>],
    results: &[&Secret],
) -> Vec<bool> {
    let exponent = |i: usize| &*lanes[i % lanes.len()].numbers.e;
    let bit = |i: usize, at: usize| words::bits(exponent(i), at, 1) == 1;
    let longest = lanes.iter().map(|lane| words::bit_length(&lane.numbers.e)).max().unwrap_or_default();

    for i in 0..A::LANES {
        ring.put_x(i, results[i % results.len()]);
    }
    let digits = ring.radix.digits;
    let (plain, base) = (0..digits, digits..2 * digits);
    ring.table[plain.clone()].copy_from_slice(&ring.x);
    ring.y.copy_from_slice(&ring.r_squared);
    multiply(arithmetic, ring);
    ring.table[base.clone()].copy_from_slice(&ring.x);

    // From the top bit down to bit 1, in Montgomery form.
    choose(&mut ring.x, &ring.table[base.clone()], &ring.one, |i| bit(i, longest - 1));
    for at in (1..longest - 1).rev() {
        square(arithmetic, ring);
        if (0..lanes.len()).any(|i| bit(i, at)) {
            choose(&mut ring.y, &ring.table[base.clone()], &ring.one, |i| bit(i, at));
            multiply(arithmetic, ring);
        }
    }
    // Bit 0 is set, as e is odd: the factor that converts from Montgomery form also converts the product.
    square(arithmetic, ring);
    ring.y.copy_from_slice(&ring.table[plain]);
    multiply(arithmetic, ring);

    lanes.iter().enumerate().map(|(i, lane)| matches(ring, i, lane)).collect()
}

fn matches<A: Arithmetic>(ring: &Ring<A>, i: usize, lane: &Lane<'_, A>) -> bool {
    let n = &lane.numbers.n;
    let mut power = words::secret(n.len() + 1);
    ring.get_x(i, &mut power);
    words::canonicalise(&mut power, n);
    // The validity of a result is public: a wrong one is reported.
    secrecy::declassify(words::equal(&power[..n.len()], lane.input))
}

/// Sets x to `yes` or `no` in each lane.
fn choose<V: Vector>(x: &mut [V], yes: &[V], no: &[V], condition: impl Fn(usize) -> bool) {
    x.copy_from_slice(no);
    for lane in (0..V::default().lanes().len()).filter(|&lane| condition(lane)) {
        for (x, yes) in x.iter_mut().zip(yes) {
            x.lanes_mut()[lane] = yes.lanes()[lane];
        }
    }
}

fn multiply<A: Arithmetic>(arithmetic: A, ring: &mut Ring<A>) {
    arithmetic.multiply(std::slice::from_mut(ring));
}

fn square<A: Arithmetic>(arithmetic: A, ring: &mut Ring<A>) {
    arithmetic.square(std::slice::from_mut(ring));
}
