//! Vectors of the instruction sets against plain arithmetic, the arithmetic against definitions, and the algorithm
//! under valgrind.

use super::batch::{Pool, Randomness};
use super::challenge::{Challenge, Sampler, Small};
use super::kernels::Kernels;
use super::ntt::Q_INVERSE;
use super::parameters::Gamma2;
use super::polynomial::{BLOCK, Block, N, Polynomial, Q};
use super::portable::Plain;
use super::vector::Vector;
use super::vectors::{sign_one, verify_one};
use super::{MlDsa, MlDsaKey, MlDsaMessage, MlDsaSignature, Portable};
#[cfg(target_arch = "x86_64")]
use crate::secrecy::hide;
use std::array::from_fn;

/// Calls a function with the pool of every tier of this CPU, of those that `TEST_TIERS` names.
macro_rules! on_each_tier {
    ($function:ident) => {
        if crate::ml_dsa::tests::is_wanted("portable") {
            $function(&crate::ml_dsa::Pool::new(crate::ml_dsa::Portable));
        }
        #[cfg(target_arch = "x86_64")]
        {
            use crate::x86_64::{avx512::Avx512, ml_dsa_avx2::Avx2};
            match crate::cpu::HaveAvx2Fma::detect() {
                Some(proof) if crate::ml_dsa::tests::is_wanted("avx2") => {
                    $function(&crate::ml_dsa::Pool::new(Avx2::new(proof)));
                }
                _ => println!("skipped: this CPU lacks AVX2 or FMA, or TEST_TIERS lacks avx2"),
            }
            match crate::cpu::HaveAvx512::detect() {
                Some(proof) if crate::ml_dsa::tests::is_wanted("ifma") => {
                    $function(&crate::ml_dsa::Pool::new(Avx512::new(proof)));
                }
                _ => println!("skipped: this CPU lacks AVX-512 with VBMI, or TEST_TIERS lacks ifma"),
            }
        }
    };
}
pub(super) use on_each_tier;

pub(super) fn is_wanted(tier: &str) -> bool {
    std::env::var("TEST_TIERS").ok().is_none_or(|tiers| tiers.split(',').any(|wanted| wanted == tier))
}

#[derive(Clone)]
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 8) as usize % bound
    }

    pub(super) fn bytes<const LEN: usize>(&mut self) -> [u8; LEN] {
        from_fn(|_| (self.next() >> 50) as u8)
    }

    fn polynomial(&mut self, bound: i32) -> Polynomial {
        let mut polynomial = Polynomial::ZERO;
        let bound = bound as usize;
        polynomial.coefficients_mut().for_each(|x| *x = self.below(2 * bound + 1) as i32 - bound as i32);
        polynomial
    }
}

/// Computes the vector operations of a tier, each on the same numbers.
fn operations<V: Vector>(blocks: &[Block; 16], bytes: &[u8; 64]) -> Vec<[i32; BLOCK]> {
    let mut rows = [V::words(0); 16];
    for (row, block) in rows.iter_mut().zip(blocks) {
        *row = V::load(block);
    }
    let [a, b, c, d, ..] = rows;
    let mut signed = [0; 64];
    signed.iter_mut().zip(bytes).for_each(|(to, byte)| *to = *byte as i8);
    let quarter = signed.first_chunk().expect("16 bytes");
    let sums = V::add_products(V::add_products([V::words(0); 2], a, b), c, d);
    let mut results = vec![
        V::words(-8_380_417),
        a.plus(b),
        a.minus(b),
        a.and(b),
        a.or(b),
        a.xor(b),
        a.times_low(b),
        a.shift_right::<7>(),
        a.shift_right::<31>(),
        a.absolute(),
        a.maximum(b),
        b.maximum(a),
        V::words(a.largest()),
        a.times(b, b.times_low(V::words(Q_INVERSE))),
        sums[0],
        sums[1],
        V::reduce(sums),
        V::unpack_18_bits(bytes),
        V::unpack_20_bits(bytes),
        V::from_bytes(quarter),
        V::load_bytes(&signed),
        V::load_bytes(&signed).plus_bytes(a),
    ];
    results.extend(V::transpose(rows));
    let mut blocks: Vec<[i32; BLOCK]> = Vec::new();
    for result in results {
        let mut block = Block([0; BLOCK]);
        result.store(&mut block);
        blocks.push(block.0);
        blocks.push(result.to_bytes().map(i32::from));
        result.store_bytes(&mut signed);
        blocks.extend(signed.as_chunks().0.iter().map(|bytes| bytes.map(i32::from)));
    }
    blocks
}

#[test]
fn vectors_agree_with_plain_arithmetic() {
    on_each_tier!(agrees);
}

fn agrees<K: Kernels>(_: &Pool<K>) {
    let mut random = Random(1);
    for round in 0..300 {
        let mut blocks: [Block; 16] = from_fn(|_| Block(from_fn(|_| (random.next() >> 16) as i32)));
        match round {
            0 => blocks = [Block([0; BLOCK]); 16],
            1 => blocks = [Block([-1; BLOCK]); 16],
            2 => blocks[0] = Block([i32::MAX; BLOCK]),
            _ => {}
        }
        let bytes = random.bytes();
        assert!(
            operations::<K::Vector>(&blocks, &bytes) == operations::<Plain>(&blocks, &bytes),
            "round {round}"
        );
    }
}

/// Computes a product modulo x^256 + 1 and q by its definition.
fn product(a: &Polynomial, b: &Polynomial) -> Polynomial {
    let mut sums = [0i64; N];
    for (i, a) in a.coefficients().enumerate() {
        for (j, b) in b.coefficients().enumerate() {
            let term = i64::from(a) * i64::from(b) % i64::from(Q);
            sums[(i + j) % N] += if i + j < N { term } else { -term };
        }
    }
    let mut product = Polynomial::ZERO;
    product.coefficients_mut().zip(sums).for_each(|(to, sum)| *to = (sum % i64::from(Q)) as i32);
    product.centre();
    product
}

#[test]
fn products_are_right() {
    on_each_tier!(multiplies);
}

fn multiplies<K: Kernels>(pool: &Pool<K>) {
    let kernels = pool.kernels;
    let mut random = Random(2);
    let mut extreme = Polynomial::ZERO;
    extreme.coefficients_mut().for_each(|x| *x = Q - 1);
    let mut inputs: Vec<Polynomial> = (0..5).map(|_| random.polynomial(Q - 1)).collect();
    inputs.push(extreme);
    extreme.coefficients_mut().enumerate().for_each(|(i, x)| *x *= 1 - 2 * (i as i32 % 2));
    inputs.push(extreme);
    for a in &inputs {
        for b in &inputs {
            let (mut ta, mut tb, mut found) = (*a, *b, Polynomial::ZERO);
            kernels.ntt(&mut ta);
            kernels.ntt(&mut tb);
            assert!(ta.coefficients().all(|x| x.abs() < 9 * Q));
            tb.centre();
            kernels.multiply(&ta, &tb, &mut found);
            assert!(found.coefficients().all(|x| x.abs() < Q));
            kernels.inverse_ntt(&mut found);
            assert!(found.coefficients().all(|x| x.abs() < Q));
            found.centre();
            assert_eq!(found, product(a, b));
        }
    }
}

#[test]
fn every_coefficient_is_decomposed() {
    on_each_tier!(decomposes);
}

fn decomposes<K: Kernels>(pool: &Pool<K>) {
    let (mut low, mut high) = (Polynomial::ZERO, [0; N]);
    for gamma2 in [Gamma2::Of88, Gamma2::Of32] {
        let range = 2 * gamma2.value();
        // Every number where the high part may change, and every 31st one; negative ones too.
        let edges = (0..=Q / range).flat_map(|i| (-3..=3).map(move |d| i * range + range / 2 + d));
        let mut numbers: Vec<i32> = edges.chain((0..Q).step_by(31)).chain([Q - 2, Q - 1]).collect();
        numbers.retain(|r| (0..Q).contains(r));
        let negative: Vec<i32> = numbers.iter().filter(|r| **r > 0).map(|r| r - Q).collect();
        numbers.extend(negative);
        numbers.resize(numbers.len().next_multiple_of(N), 0);
        for numbers in numbers.as_chunks::<N>().0 {
            let mut r = Polynomial::ZERO;
            r.coefficients_mut().zip(numbers).for_each(|(to, number)| *to = *number);
            pool.kernels.decompose(gamma2, &r, &mut low, &mut high);
            for (i, number) in numbers.iter().enumerate() {
                let canonical = number.rem_euclid(Q);
                let mut expected = canonical % range;
                expected -= if expected > range / 2 { range } else { 0 };
                let quotient = (canonical - expected) / range;
                let (quotient, expected) =
                    if canonical - expected == Q - 1 { (0, expected - 1) } else { (quotient, expected) };
                assert_eq!((i32::from(high[i]), low.get(i)), (quotient, expected), "{number}");
            }
        }
    }
}

#[test]
fn small_products_are_right() {
    on_each_tier!(multiplies_small);
}

fn multiplies_small<K: Kernels>(pool: &Pool<K>) {
    let mut random = Random(3);
    for set in MlDsa::ALL {
        let parameters = set.parameters();
        for _ in 0..20 {
            let challenge = challenge(parameters.tau, &mut random);
            let small = match random.below(3) {
                0 => {
                    let mut most = Polynomial::ZERO;
                    most.coefficients_mut().for_each(|x| *x = parameters.eta);
                    most
                }
                _ => random.polynomial(parameters.eta),
            };
            let base = random.polynomial(1 << 19);
            let mut expected = product(&challenge.polynomial(), &small);
            for (sum, base) in expected.coefficients_mut().zip(base.coefficients()) {
                *sum += base;
            }
            let mut sum = Polynomial::ZERO;
            let terms = parameters.byte_terms();
            let largest =
                pool.kernels.add_small_product(&Small::new(&small), &challenge, terms, &base, &mut sum);
            assert_eq!(sum, expected);
            assert_eq!(Some(largest), sum.coefficients().map(i32::abs).max());
        }
    }
}

fn challenge(tau: usize, random: &mut Random) -> Challenge {
    let mut sampler = Sampler::new(tau, &random.bytes::<136>());
    loop {
        if let Some(challenge) = sampler.finish() {
            return challenge;
        }
        sampler.sample(&random.bytes::<136>());
    }
}

/// A challenge that needs more than a block of its hash: all bytes of the first are rejected.
#[test]
fn challenges_continue_in_the_next_block() {
    let mut block = [0xff; 136];
    let mut sampler = Sampler::new(39, &block);
    assert!(sampler.finish().is_none());
    (0..136).for_each(|i| block[i] = i as u8);
    sampler.sample(&block);
    let polynomial = sampler.finish().expect("complete").polynomial();
    assert_eq!(polynomial.coefficients().filter(|x| *x != 0).count(), 39);
    assert!(polynomial.coefficients().all(|x| x.abs() <= 1));
}

/// Operations of a batch of any size have the signatures that they have alone: refilled slots, and attempts made in
/// advance, change nothing.
#[test]
fn a_batch_signs_as_each_alone() {
    on_each_tier!(signs_alike);
}

fn signs_alike<K: Kernels>(pool: &Pool<K>) {
    let mut random = Random(4);
    let alone = Pool::new(Portable);
    for set in MlDsa::ALL {
        let keys: Vec<MlDsaKey> = (0..3).map(|_| pool.key(set, &random.bytes())).collect();
        for fill in [1, 2, 3, 5, 8, 11, 30] {
            let inputs: Vec<([u8; 64], Randomness)> =
                (0..fill).map(|_| (random.bytes(), random.bytes())).collect();
            let mut signatures = vec![vec![0; set.signature_bytes()]; fill];
            let ops = inputs.iter().zip(&mut signatures).enumerate();
            let mut ops: Vec<_> = ops
                .map(|(i, ((mu, _), to))| {
                    MlDsaSignature::new(&keys[i % 3], MlDsaMessage::Representative(mu), to)
                })
                .collect();
            let randomness: Vec<Randomness> = inputs.iter().map(|(_, random)| *random).collect();
            pool.sign_with(&mut ops, &randomness);
            assert!(pool.is_wiped());
            for (i, ((mu, random), signature)) in inputs.iter().zip(&signatures).enumerate() {
                let message = MlDsaMessage::Representative(mu);
                assert!(sign_one(&alone, &keys[i % 3], message, random).as_ref() == Some(signature), "{i}");
                let public = keys[i % 3].public_key().encoded();
                assert!(verify_one(pool, set, public, message, signature));
            }
        }
    }
}

/// Documented in `key.rs` and in `docs/kernels/ml-dsa.md`.
#[test]
fn keys_take_as_much_memory_as_documented() {
    let kibibytes = MlDsa::ALL.map(|set| Pool::new(Portable).key(set, &[1; 32]).bytes().div_ceil(1024));
    assert_eq!(kibibytes, [32, 53, 87]);
}

/// Signs with keys and randomness that are undefined for memcheck.
#[cfg(target_arch = "x86_64")]
pub(crate) fn operate_on_undefined() {
    fn operate<K: Kernels>(pool: &Pool<K>) {
        let mut random = Random(5);
        for set in [MlDsa::MlDsa44, MlDsa::MlDsa65] {
            let mut key = pool.key(set, &random.bytes());
            let public = key.public_key().encoded().to_vec();
            let (mu, mut randomness): ([u8; 64], Randomness) = (random.bytes(), random.bytes());
            let message = MlDsaMessage::Representative(&mu);
            let expected = sign_one(pool, &key, message, &randomness).expect("a signature");
            key.hide();
            hide(&mut randomness);
            let found = sign_one(pool, &key, message, &randomness).expect("a signature");
            assert!(found == expected);
            assert!(verify_one(pool, set, &public, message, &found));
        }
    }
    on_each_tier!(operate);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn the_operations_for_valgrind_succeed() {
    operate_on_undefined();
}
