//! From m1 = c^dp mod p and m2 = c^dq mod q to s = c^d mod n (Garner's form of the Chinese remainder
//! theorem, RFC 8017 section 5.1.2).

use super::Lane;
use super::arithmetic::Arithmetic;
use super::ring::Ring;
use crate::words::{self, Secret};

/// s = m2 + q * ((m1 - m2) qInv mod p) for each filled lane. Expects m1 and m2 in Montgomery form in the x of
/// the two rings.
pub(super) fn recombine<A: Arithmetic>(
    arithmetic: A,
    halves: &mut [Ring<A>; 2],
    lanes: &[Lane<'_, A>],
) -> Vec<Secret> {
    for ring in halves.iter_mut() {
        ring.set_y_to_unit();
    }
    arithmetic.multiply(halves);
    let m2: Vec<Secret> = (0..lanes.len()).map(|i| canonical(&halves[1], i, &lanes[i].key.q)).collect();

    let [half_p, _] = halves;
    for i in 0..A::LANES {
        let filled = i % lanes.len();
        let p = &lanes[filled].key.p;
        // m1 + 2p - m2 lies in (0, 3p): q has as many bits as p, so m2 < q < 2p.
        let mut difference = canonical(half_p, i, p);
        words::add(&mut difference, p);
        words::add(&mut difference, p);
        words::subtract(&mut difference, &m2[filled]);
        half_p.put_x(i, &difference);
    }
    half_p.y.copy_from_slice(&half_p.qinv);
    arithmetic.multiply(std::slice::from_mut(half_p));

    let join = |(i, m2): (usize, &Secret)| {
        let key = lanes[i].key;
        let h = canonical(half_p, i, &key.p);
        let half_words = key.size.half_words();
        let mut result = words::secret(key.size.words());
        words::multiply(&mut result, &h[..half_words], &key.q);
        words::add(&mut result, m2);
        result
    };
    m2.iter().enumerate().map(join).collect()
}

/// The x of one lane in [0, modulus), with a zero word above.
fn canonical<A: Arithmetic>(ring: &Ring<A>, lane: usize, modulus: &[u64]) -> Secret {
    let mut number = words::secret(modulus.len() + 1);
    ring.get_x(lane, &mut number);
    words::canonicalise(&mut number, modulus);
    number
}
