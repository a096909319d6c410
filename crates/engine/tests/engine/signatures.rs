//! Every key type with every scheme, checked by BoringSSL's own verifier.

use crate::support::{Recorder, all_keys, schemes_of, settings, start};
use boring::{
    hash::{MessageDigest, hash},
    rsa::Padding,
    sign::{RsaPssSaltlen, Verifier},
};
use quadrille_engine::{Key, Operation, Scalar, SignatureScheme as S};

#[test]
fn every_scheme_of_every_key_verifies() {
    let seen = Recorder::default();
    let engine = start(settings(2, 256), Scalar, seen.clone());
    let mut expected = 0;
    for key in all_keys() {
        for &scheme in schemes_of(&key) {
            for message in [&b""[..], b"message", &[0xa5; 1000]] {
                let operation = Operation::sign(&key, scheme, message).unwrap();
                let outcome = engine.submit(&key, operation).unwrap().wait().unwrap();
                assert!(verifies(&key, scheme, message, &outcome.bytes), "{key:?} {scheme:?}");
                assert!(!verifies(&key, scheme, b"another", &outcome.bytes), "{key:?} {scheme:?}");
                expected += 1;
            }
        }
    }
    drop(engine);
    assert_eq!(seen.sum(|batch| batch.operations), expected);
    assert_eq!(seen.sum(|batch| batch.recomputed + batch.failed), 0);
}

fn verifies(key: &Key, scheme: S, message: &[u8], signature: &[u8]) -> bool {
    match scheme {
        S::RsaPkcs1Md5Sha1 => md5_sha1(key, message, signature),
        S::Ed25519 => Verifier::new_without_digest(key.pkey())
            .unwrap()
            .verify_oneshot(signature, message)
            .unwrap_or(false),
        _ => {
            let mut verifier = Verifier::new(digest(scheme), key.pkey()).unwrap();
            if matches!(scheme, S::RsaPssSha256 | S::RsaPssSha384 | S::RsaPssSha512) {
                verifier.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
                verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH).unwrap();
            }
            verifier.verify_oneshot(signature, message).unwrap_or(false)
        }
    }
}

/// Nobody offers this one as a whole: take the padding off, and compare (RFC 2246 section 7.4.3).
fn md5_sha1(key: &Key, message: &[u8], signature: &[u8]) -> bool {
    let rsa = key.pkey().rsa().unwrap();
    let mut opened = vec![0; rsa.size() as usize];
    let len = rsa.public_decrypt(signature, &mut opened, Padding::PKCS1).unwrap();
    let both = [hash(MessageDigest::md5(), message).unwrap(), hash(MessageDigest::sha1(), message).unwrap()];
    opened[..len] == both.map(|digest| digest.to_vec()).concat()
}

fn digest(scheme: S) -> MessageDigest {
    match scheme {
        S::RsaPkcs1Sha1 | S::EcdsaSha1 => MessageDigest::sha1(),
        S::RsaPkcs1Sha384 | S::RsaPssSha384 | S::EcdsaSha384 => MessageDigest::sha384(),
        S::RsaPkcs1Sha512 | S::RsaPssSha512 | S::EcdsaSha512 => MessageDigest::sha512(),
        _ => MessageDigest::sha256(),
    }
}
