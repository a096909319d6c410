//! ECDSA on P-256 on every tier that signs: signatures verify with BoringSSL.
//!
//! `TEST_OPERATIONS` sets the number of random signatures (1,000 by default).

mod support;

use boring_sys as ffi;
use quadrille_kernels::{Lanes, P256_BYTES, P256Key, P256Signature};
use std::collections::HashSet;
use support::Random;

type Bytes = [u8; P256_BYTES];
type Signature = [u8; 2 * P256_BYTES];

support::on_each_tier! { fills digests extreme_keys nonces_are_used_once random }

/// Every number of signatures up to more than share an inversion.
fn fills(lanes: &Lanes) {
    let mut random = Random::new(31);
    for fill in (0..20).chain([63, 64, 65, 73]) {
        check(lanes, &(0..fill).map(|_| Case::new(&mut random)).collect::<Vec<_>>());
    }
}

/// Digests longer or shorter than the order, and those not below it.
fn digests(lanes: &Lanes) {
    let mut random = Random::new(32);
    let lengths = [0, 1, 20, 28, 31, 32, 33, 48, 64];
    let mut cases: Vec<Case> =
        lengths.iter().map(|length| Case { digest: vec![0xff; *length], ..Case::new(&mut random) }).collect();
    cases.push(Case { digest: vec![0; 32], ..Case::new(&mut random) });
    check(lanes, &cases);
}

/// Keys 1 and the order less 1, and invalid keys.
fn extreme_keys(lanes: &Lanes) {
    let order = "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551";
    let order: Bytes = support::unhex(order).try_into().expect("32 bytes");
    let (mut one, mut below) = ([0; P256_BYTES], order);
    one[P256_BYTES - 1] = 1;
    below[P256_BYTES - 1] -= 1;
    let mut random = Random::new(33);
    let cases = [one, below].map(|d| Case { d, ..Case::new(&mut random) });
    check(lanes, &cases);
    for none in [[0; P256_BYTES], order, [0xff; P256_BYTES]] {
        assert!(P256Key::new(&none).is_none());
    }
}

/// Many signatures with the same key and digest: no two share their r.
fn nonces_are_used_once(lanes: &Lanes) {
    let case = Case::new(&mut Random::new(34));
    let cases = vec![case; 100];
    let signatures = sign(lanes, &cases);
    let distinct: HashSet<&[u8]> = signatures.iter().flatten().map(|s| &s[..P256_BYTES]).collect();
    assert_eq!(distinct.len(), signatures.iter().flatten().count());
}

fn random(lanes: &Lanes) {
    let mut left = std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"));
    let mut random = Random::new(35);
    while left > 0 {
        let fill = (1 + random.below(33)).min(left);
        check(lanes, &(0..fill).map(|_| Case::new(&mut random)).collect::<Vec<_>>());
        left -= fill;
    }
}

#[derive(Clone)]
struct Case {
    d: Bytes,
    digest: Vec<u8>,
}

impl Case {
    fn new(random: &mut Random) -> Self {
        let mut bytes = || std::array::from_fn(|_| (random.next() >> 56) as u8);
        let (mut d, digest): (Bytes, Bytes) = (bytes(), bytes());
        d[0] &= 0x7f;
        Self { d, digest: digest.to_vec() }
    }
}

/// Checks that every signature is created and verifies, and no other does, if there are lanes; otherwise that none
/// is.
fn check(lanes: &Lanes, cases: &[Case]) {
    let signatures = sign(lanes, cases);
    for (case, signature) in cases.iter().zip(signatures) {
        assert_eq!(signature.is_some(), lanes.p256_width() > 1, "{:02x?}", case.d);
        let Some(mut signature) = signature else { continue };
        assert!(verifies(case, &signature), "{:02x?} {:02x?}", case.d, case.digest);
        if case.d[1] == 7 {
            signature[40] ^= 1;
            assert!(!verifies(case, &signature), "the oracle detects a wrong signature");
        }
    }
}

fn sign(lanes: &Lanes, cases: &[Case]) -> Vec<Option<Signature>> {
    let keys: Vec<_> = cases.iter().map(|case| P256Key::new(&case.d).expect("a key")).collect();
    let mut signatures = vec![[0; 2 * P256_BYTES]; cases.len()];
    let ops = keys.iter().zip(cases).zip(&mut signatures);
    let mut ops: Vec<_> =
        ops.map(|((key, case), signature)| P256Signature::new(key, &case.digest, signature)).collect();
    lanes.sign_p256(&mut ops);
    let marks: Vec<_> = ops.iter().map(P256Signature::is_signed).collect();
    signatures.into_iter().zip(marks).map(|(signature, signed)| signed.then_some(signature)).collect()
}

/// Verifies with BoringSSL and the public key derived from the private one.
fn verifies(case: &Case, signature: &Signature) -> bool {
    // SAFETY: every object is created and freed here, or owned by one that is; lengths are those of the slices.
    unsafe {
        let key = ffi::EC_KEY_new_by_curve_name(ffi::NID_X9_62_prime256v1);
        let group = ffi::EC_KEY_get0_group(key);
        let number = |bytes: &[u8]| ffi::BN_bin2bn(bytes.as_ptr(), bytes.len(), std::ptr::null_mut());
        let d = number(&case.d);
        let point = ffi::EC_POINT_new(group);
        let null = std::ptr::null;
        let made = ffi::EC_POINT_mul(group, point, d, null(), std::ptr::null(), std::ptr::null_mut());
        assert_eq!((made, ffi::EC_KEY_set_public_key(key, point)), (1, 1));
        let parsed = ffi::ECDSA_SIG_new();
        let (r, s) = signature.split_at(P256_BYTES);
        assert_eq!(ffi::ECDSA_SIG_set0(parsed, number(r), number(s)), 1);
        let verified = ffi::ECDSA_do_verify(case.digest.as_ptr(), case.digest.len(), parsed, key);
        ffi::ECDSA_SIG_free(parsed);
        ffi::EC_POINT_free(point);
        ffi::BN_free(d);
        ffi::EC_KEY_free(key);
        ffi::ERR_clear_error();
        verified == 1
    }
}
