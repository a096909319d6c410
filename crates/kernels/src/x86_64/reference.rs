//! Checks kernels against BoringSSL's bignum arithmetic, which is independent of them.

use crate::batch::{Arithmetic, Digit, Radix, Ring, Vector};
use crate::portable::multiply_mod;
use quadrille_rsa_numbers::words::{self, Secret};

/// Multiplies and squares in every lane and checks value and bounds. The operands are mixtures of `extreme` digits (a
/// number below 8n), random numbers and 0 or 1; the moduli range from the smallest to the largest of `bits` bits.
pub(crate) fn check_products<A: Arithmetic>(
    arithmetic: A,
    bits: usize,
    extreme: impl Fn(Radix) -> Vec<Digit<A>>,
) {
    let radix = A::radix(bits);
    let moduli: Vec<Vec<u64>> = (0..A::LANES).map(|lane| modulus(bits, lane)).collect();
    let mut ring = Ring::<A>::new(radix, 0);
    for (lane, modulus) in moduli.iter().enumerate() {
        let constants = A::modulus_constants(modulus, radix);
        ring.modulus.resize(constants.len(), A::Vector::default());
        put(&mut ring.modulus, lane, &constants);
    }
    for round in 0..12u64 {
        for lane in 0..A::LANES {
            let operand = |which: u64| match (round + lane as u64 + which) % 3 {
                0 => extreme(radix),
                1 => A::encode(&random(bits, round + 97 * which + lane as u64), radix).to_vec(),
                _ => A::encode(&[round % 2], radix).to_vec(),
            };
            put(&mut ring.x, lane, &operand(0));
            put(&mut ring.y, lane, &operand(round / 3));
        }
        let y = residues::<A>(&ring.y, radix, &moduli);
        step(&mut ring, &moduli, Some(&y), |rings| arithmetic.multiply(rings));
        // Results may be inputs again.
        step(&mut ring, &moduli, None, |rings| arithmetic.square(rings));
        step(&mut ring, &moduli, Some(&y), |rings| arithmetic.multiply(rings));
    }
}

/// Runs one kernel; the factors are x and `y`, or x twice.
fn step<A: Arithmetic>(
    ring: &mut Ring<A>,
    moduli: &[Vec<u64>],
    y: Option<&[Secret]>,
    kernel: impl FnOnce(&mut [Ring<A>]),
) {
    let x = residues::<A>(&ring.x, ring.radix, moduli);
    kernel(std::slice::from_mut(ring));
    for (lane, n) in moduli.iter().enumerate() {
        let mut product = words::secret(n.len() + 1);
        A::decode(&lane_of(&ring.x, lane), ring.radix, &mut product);
        words::canonicalise(&mut product, n);
        assert_eq!(product[n.len()], 0, "a product is in (-2n, 3n)");
        assert_eq!(words::less_mask(&product[..n.len()], n), u64::MAX, "a product is in (-2n, 3n)");
        let mut r = vec![0; ring.radix.montgomery_bits() / 64 + 1];
        r[ring.radix.montgomery_bits() / 64] = 1 << (ring.radix.montgomery_bits() % 64);
        let times_r = multiply_mod(&product[..n.len()], &r, n);
        let factors = multiply_mod(&x[lane], &y.unwrap_or(&x)[lane], n);
        assert_eq!(times_r, factors, "lane {lane} of {} digits", ring.radix.digits);
    }
}

/// Returns each lane's number reduced to [0, n).
fn residues<A: Arithmetic>(vectors: &[A::Vector], radix: Radix, moduli: &[Vec<u64>]) -> Vec<Secret> {
    let residue = |(lane, n): (usize, &Vec<u64>)| {
        let mut number = words::secret(n.len() + 1);
        A::decode(&lane_of(vectors, lane), radix, &mut number);
        for _ in 0..4 {
            words::add(&mut number, n);
        }
        (0..16).for_each(|_| words::reduce_once(&mut number, n));
        number.truncate(n.len());
        number
    };
    moduli.iter().enumerate().map(residue).collect()
}

/// Returns odd numbers of exactly `bits` bits: all ones, one and a few zeros, the smallest, random ones.
fn modulus(bits: usize, lane: usize) -> Vec<u64> {
    let len = bits / 64;
    let mut modulus = match lane {
        0 => vec![u64::MAX; len],
        1 => vec![0; len],
        _ => random(bits, 1000 + lane as u64),
    };
    modulus[0] |= 1;
    modulus[len - 1] |= 1 << 63;
    modulus
}

/// splitmix64.
fn random(bits: usize, seed: u64) -> Vec<u64> {
    let word = |i: u64| {
        let z = (seed << 32 | i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    (0..bits as u64 / 64).map(word).collect()
}

fn put<V: Vector>(vectors: &mut [V], lane: usize, digits: &[V::Digit]) {
    for (vector, &digit) in vectors.iter_mut().zip(digits) {
        vector.lanes_mut()[lane] = digit;
    }
}

fn lane_of<V: Vector>(vectors: &[V], lane: usize) -> Vec<V::Digit> {
    vectors.iter().map(|vector| vector.lanes()[lane]).collect()
}
