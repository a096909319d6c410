//! Recombination of m1 = c^dp mod p and m2 = c^dq mod q to s = c^d mod n (Garner's form of the Chinese remainder
//! theorem, RFC 8017 section 5.1.2).

use super::arithmetic::{Arithmetic, Ring};
use super::lane::Lane;
use super::lane_layout::{Half, LaneLayout, LanePosition};
use quadrille_rsa_numbers::words::{self, Secret};

/// Computes s = m2 + q * ((m1 - m2) qInv mod p) for each operation. Expects m1 and m2 in Montgomery form in the x of
/// the rings.
pub(super) fn recombine<A: Arithmetic>(
    arithmetic: A,
    rings: &mut [Ring<A>],
    layout: LaneLayout,
    lanes: &[Lane<'_, A>],
) -> Vec<Secret> {
    for ring in rings.iter_mut() {
        ring.set_y_to_unit();
    }
    arithmetic.multiply(rings);
    let residue = |rings: &[Ring<A>], i: usize, half: Half| {
        let LanePosition { ring, lane } = layout.position(i, half);
        canonical(&rings[ring], lane, if half == Half::P { &lanes[i].numbers.p } else { &lanes[i].numbers.q })
    };
    let m2: Vec<Secret> = (0..lanes.len()).map(|i| residue(rings, i, Half::Q)).collect();

    // Only the lanes of p are used.
    for (i, lane) in lanes.iter().enumerate() {
        // The value m1 + 2p - m2 is in (0, 3p): q has as many bits as p, so m2 < q < 2p.
        let mut difference = residue(rings, i, Half::P);
        words::add(&mut difference, &lane.numbers.p);
        words::add(&mut difference, &lane.numbers.p);
        words::subtract(&mut difference, &m2[i]);
        rings[0].put_x(layout.position(i, Half::P).lane, &difference);
    }
    let ring = &mut rings[0];
    ring.y.copy_from_slice(&ring.qinv);
    arithmetic.multiply(std::slice::from_mut(ring));

    let join = |(i, m2): (usize, &Secret)| {
        let numbers = lanes[i].numbers;
        let h = residue(rings, i, Half::P);
        let half_words = numbers.size.prime_words();
        let mut result = words::secret(numbers.size.words());
        words::multiply(&mut result, &h[..half_words], &numbers.q);
        words::add(&mut result, m2);
        result
    };
    m2.iter().enumerate().map(join).collect()
}

/// Returns the x of one lane in [0, modulus), with a zero word above.
fn canonical<A: Arithmetic>(ring: &Ring<A>, lane: usize, modulus: &[u64]) -> Secret {
    let mut number = words::secret(modulus.len() + 1);
    ring.get_x(lane, &mut number);
    words::canonicalise(&mut number, modulus);
    number
}
