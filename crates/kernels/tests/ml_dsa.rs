//! ML-DSA on every tier, with BoringSSL as the oracle in both directions: it verifies what lanes sign, and lanes
//! verify what it signs. (`src/ml_dsa/vectors.rs` has published vectors.)
//!
//! `TEST_OPERATIONS` sets the number of random signatures (1,000 by default, 60 of the larger sets and on the portable
//! tier).

mod support;

use boring_sys as ffi;
use quadrille_kernels::{
    Lanes, MlDsa, MlDsaKey, MlDsaMessage, MlDsaPublicKey, MlDsaSignature, MlDsaVerification,
};
use std::collections::HashSet;
use std::mem::MaybeUninit;
use support::Random;

support::on_each_tier! { fills mixed_sets refused keys hedged forged random }

/// Every number of signatures up to more than two waves, and more.
fn fills(lanes: &Lanes) {
    let mut random = Random::new(51);
    let most = if operations() < 100 { 3 } else { 20 };
    for fill in (0..most).chain([2 * most]) {
        let cases: Vec<Case> = (0..fill).map(|_| Case::new(lanes, MlDsa::MlDsa44, &mut random)).collect();
        check(lanes, &cases);
    }
}

/// Batches of all parameter sets at once.
fn mixed_sets(lanes: &Lanes) {
    let mut random = Random::new(52);
    let cases: Vec<Case> =
        (0..13).map(|i| Case::new(lanes, MlDsa::ALL[i * i % 7 % 3], &mut random)).collect();
    check(lanes, &cases);
}

/// Operations that cannot be computed do not affect others.
fn refused(lanes: &Lanes) {
    let mut random = Random::new(53);
    let case = Case::new(lanes, MlDsa::MlDsa44, &mut random);
    let len = MlDsa::MlDsa44.signature_bytes();
    let (mut short, mut long, mut right, mut unsigned) =
        (vec![7; len - 1], vec![7; len + 1], vec![0; len], vec![7; len]);
    let too_long = MlDsaMessage::Pure { message: &[], context: &[0; 256] };
    let longest = MlDsaMessage::Pure { message: &case.message, context: &[5; 255] };
    let mut ops = [
        MlDsaSignature::new(&case.key, case.pure(), &mut short),
        MlDsaSignature::new(&case.key, case.pure(), &mut long),
        MlDsaSignature::new(&case.key, longest, &mut right),
        MlDsaSignature::new(&case.key, too_long, &mut unsigned),
    ];
    lanes.sign_ml_dsa(&mut ops);
    assert_eq!(ops.each_ref().map(MlDsaSignature::is_signed), [false, false, true, false]);
    assert!(short.iter().chain(&long).chain(&unsigned).all(|byte| *byte == 7), "unchanged");
    let public = case.key.public_key();
    let mut ops = [
        MlDsaVerification::new(public, longest, &right),
        MlDsaVerification::new(public, case.pure(), &right),
        MlDsaVerification::new(public, longest, &right[1..]),
        MlDsaVerification::new(public, too_long, &right),
    ];
    lanes.verify_ml_dsa(&mut ops);
    assert_eq!(ops.each_ref().map(MlDsaVerification::is_valid), [true, false, false, false]);
}

/// Public keys are BoringSSL's; expanded private keys that contradict themselves are refused.
fn keys(lanes: &Lanes) {
    let mut random = Random::new(54);
    for set in MlDsa::ALL {
        let case = Case::new(lanes, set, &mut random);
        let oracle = Oracle::new(set, &case.seed);
        assert_eq!(case.key.public_key().encoded(), oracle.public_key());
        assert_eq!(case.key.public_key().parameter_set(), set);
        let wrong = oracle.public_key();
        assert!(lanes.ml_dsa_public_key(set, &wrong[1..]).is_none());
        assert!(lanes.ml_dsa_expanded_key(set, &vec![0; set.private_key_bytes()]).is_none());
        assert!(lanes.ml_dsa_expanded_key(set, &vec![0; set.private_key_bytes() - 1]).is_none());
    }
}

/// Many signatures with one key of one message: all differ, and so do their challenges.
fn hedged(lanes: &Lanes) {
    let case = Case::new(lanes, MlDsa::MlDsa44, &mut Random::new(55));
    let cases = vec![&case; 30];
    let signatures = sign(lanes, &cases);
    let challenges: HashSet<&[u8]> = signatures.iter().map(|signature| &signature[..32]).collect();
    assert_eq!(challenges.len(), cases.len());
}

/// Signatures with one bit changed are invalid, next to valid ones.
fn forged(lanes: &Lanes) {
    let mut random = Random::new(56);
    for set in MlDsa::ALL {
        let cases: Vec<Case> = (0..3).map(|_| Case::new(lanes, set, &mut random)).collect();
        let mut signatures = sign(lanes, &cases.iter().collect::<Vec<_>>());
        for _ in 0..20 {
            let (changed, at) = (random.below(cases.len()), random.below(set.signature_bytes()));
            signatures[changed][at] ^= 1 << random.below(8);
            let found = verify(lanes, &cases, &signatures);
            let oracle: Vec<bool> = cases
                .iter()
                .zip(&signatures)
                .map(|(case, signature)| Oracle::new(set, &case.seed).verifies(&case.message, signature))
                .collect();
            assert_eq!(found, oracle, "byte {at} of {changed}");
            assert!(!found[changed]);
            signatures = sign(lanes, &cases.iter().collect::<Vec<_>>());
        }
    }
}

fn random(lanes: &Lanes) {
    let operations = operations();
    let mut random = Random::new(57);
    for set in MlDsa::ALL {
        let few = lanes.ml_dsa_width() == 1 || set != MlDsa::MlDsa44;
        let mut left = if few { operations.div_ceil(16) } else { operations };
        while left > 0 {
            let fill = (1 + random.below(33)).min(left);
            let cases: Vec<Case> = (0..fill).map(|_| Case::new(lanes, set, &mut random)).collect();
            check(lanes, &cases);
            left -= fill;
        }
    }
}

fn operations() -> usize {
    std::env::var("TEST_OPERATIONS").map_or(1_000, |n| n.parse().expect("a number"))
}

struct Case {
    set: MlDsa,
    seed: [u8; 32],
    key: MlDsaKey,
    message: Vec<u8>,
}

impl Case {
    fn new(lanes: &Lanes, set: MlDsa, random: &mut Random) -> Self {
        let seed = std::array::from_fn(|_| (random.next() >> 56) as u8);
        let message = (0..random.below(400)).map(|_| (random.next() >> 56) as u8).collect();
        Self { set, seed, key: lanes.ml_dsa_key(set, &seed), message }
    }

    fn pure(&self) -> MlDsaMessage<'_> {
        MlDsaMessage::Pure { message: &self.message, context: &[] }
    }
}

fn sign(lanes: &Lanes, cases: &[&Case]) -> Vec<Vec<u8>> {
    let mut signatures: Vec<_> = cases.iter().map(|case| vec![0; case.set.signature_bytes()]).collect();
    let ops = cases.iter().zip(&mut signatures);
    let mut ops: Vec<_> =
        ops.map(|(case, signature)| MlDsaSignature::new(&case.key, case.pure(), signature)).collect();
    lanes.sign_ml_dsa(&mut ops);
    assert!(ops.iter().all(MlDsaSignature::is_signed));
    signatures
}

fn verify(lanes: &Lanes, cases: &[Case], signatures: &[Vec<u8>]) -> Vec<bool> {
    let parse = |case: &Case| lanes.ml_dsa_public_key(case.set, case.key.public_key().encoded());
    let keys: Vec<MlDsaPublicKey> =
        cases.iter().map(|case| parse(case).expect("the length is right")).collect();
    let ops = keys.iter().zip(cases).zip(signatures);
    let mut ops: Vec<_> =
        ops.map(|((key, case), signature)| MlDsaVerification::new(key, case.pure(), signature)).collect();
    lanes.verify_ml_dsa(&mut ops);
    ops.iter().map(MlDsaVerification::is_valid).collect()
}

/// Checks signatures in both directions.
fn check(lanes: &Lanes, cases: &[Case]) {
    let signatures = sign(lanes, &cases.iter().collect::<Vec<_>>());
    let mut others = Vec::new();
    for (case, signature) in cases.iter().zip(&signatures) {
        let oracle = Oracle::new(case.set, &case.seed);
        assert!(oracle.verifies(&case.message, signature), "{:?} {:02x?}", case.set, case.seed);
        others.push(oracle.sign(&case.message));
    }
    assert!(verify(lanes, cases, &signatures).iter().all(|valid| *valid));
    assert!(verify(lanes, cases, &others).iter().all(|valid| *valid));
}

/// BoringSSL's keys.
enum Oracle {
    Of44(Box<(ffi::MLDSA44_private_key, ffi::MLDSA44_public_key)>),
    Of65(Box<(ffi::MLDSA65_private_key, ffi::MLDSA65_public_key)>),
    Of87(Box<(ffi::MLDSA87_private_key, ffi::MLDSA87_public_key)>),
}

/// Calls BoringSSL's function of the oracle's parameter set.
macro_rules! by_set {
    ($oracle:expr, $keys:ident, $of_44:ident $of_65:ident $of_87:ident, $($argument:expr),*) => {
        // SAFETY: the keys are initialised, and buffers have the lengths that are passed or the parameter set's.
        unsafe {
            match $oracle {
                Oracle::Of44($keys) => ffi::$of_44($($argument),*),
                Oracle::Of65($keys) => ffi::$of_65($($argument),*),
                Oracle::Of87($keys) => ffi::$of_87($($argument),*),
            }
        }
    };
}

/// Generates a pair of keys by functions of BoringSSL.
macro_rules! pair {
    ($seed:expr, $from_seed:ident, $public_from_private:ident) => {{
        let (mut private, mut public) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: the functions initialise their outputs, and the seed is as long as is passed.
        unsafe {
            assert_eq!(ffi::$from_seed(private.as_mut_ptr(), $seed.as_ptr(), $seed.len()), 1);
            assert_eq!(ffi::$public_from_private(public.as_mut_ptr(), private.as_ptr()), 1);
            Box::new((private.assume_init(), public.assume_init()))
        }
    }};
}

impl Oracle {
    fn new(set: MlDsa, seed: &[u8; 32]) -> Self {
        match set {
            MlDsa::MlDsa44 => {
                Self::Of44(pair!(seed, MLDSA44_private_key_from_seed, MLDSA44_public_from_private))
            }
            MlDsa::MlDsa65 => {
                Self::Of65(pair!(seed, MLDSA65_private_key_from_seed, MLDSA65_public_from_private))
            }
            MlDsa::MlDsa87 => {
                Self::Of87(pair!(seed, MLDSA87_private_key_from_seed, MLDSA87_public_from_private))
            }
        }
    }

    fn set(&self) -> MlDsa {
        match self {
            Self::Of44(_) => MlDsa::MlDsa44,
            Self::Of65(_) => MlDsa::MlDsa65,
            Self::Of87(_) => MlDsa::MlDsa87,
        }
    }

    fn public_key(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.set().public_key_bytes()];
        let mut builder = MaybeUninit::uninit();
        // SAFETY: the builder is initialised first, writes to the buffer, which is long enough, and is closed.
        unsafe { assert_eq!(ffi::CBB_init_fixed(builder.as_mut_ptr(), bytes.as_mut_ptr(), bytes.len()), 1) };
        let builder = builder.as_mut_ptr();
        let marshalled = by_set!(
            self, keys, MLDSA44_marshal_public_key MLDSA65_marshal_public_key MLDSA87_marshal_public_key,
            builder, &raw const keys.1
        );
        // SAFETY: as above.
        let closed = unsafe { ffi::CBB_finish(builder, std::ptr::null_mut(), std::ptr::null_mut()) };
        assert_eq!((marshalled, closed), (1, 1));
        bytes
    }

    fn sign(&self, message: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; self.set().signature_bytes()];
        let signed = by_set!(
            self, keys, MLDSA44_sign MLDSA65_sign MLDSA87_sign,
            signature.as_mut_ptr(), &raw const keys.0, message.as_ptr(), message.len(), std::ptr::null(), 0
        );
        assert_eq!(signed, 1);
        signature
    }

    fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let (signature, len) = (signature.as_ptr(), signature.len());
        let verified = by_set!(
            self, keys, MLDSA44_verify MLDSA65_verify MLDSA87_verify,
            &raw const keys.1, signature, len, message.as_ptr(), message.len(), std::ptr::null(), 0
        );
        // SAFETY: touches the calling thread's queue only.
        unsafe { ffi::ERR_clear_error() };
        verified == 1
    }
}
