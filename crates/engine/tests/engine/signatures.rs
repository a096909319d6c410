//! Every key type with every scheme, checked by BoringSSL's own verifier.

use crate::support::{Recorder, all_keys, schemes_of, settings, start, verifies};
use quadrille_engine::{Operation, Scalar};

#[test]
fn every_scheme_of_every_key_verifies() {
    let seen = Recorder::default();
    let engine = start(settings(2, 256), Scalar, seen.clone());
    let mut expected = 0;
    for key in all_keys() {
        for &scheme in schemes_of(&key) {
            for message in [&b""[..], b"message", &[0xa5; 1000]] {
                let operation = Operation::sign(scheme, message).unwrap();
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

/// A result from another machine is accepted only if the public key confirms it.
#[test]
fn a_public_key_confirms_its_own_results_and_no_others() {
    let engine = start(settings(2, 256), Scalar, Recorder::default());
    let keys = all_keys();
    for (index, key) in keys.iter().enumerate() {
        let other = &keys[(index + 1) % keys.len()];
        for &scheme in schemes_of(key) {
            let sign = |message: &[u8]| Operation::sign(scheme, message).unwrap();
            let operation = sign(b"message");
            let result = engine.submit(key, operation.clone()).unwrap().wait().unwrap().bytes;
            assert!(operation.verify(key.public(), &result), "{key:?} {scheme:?}");
            assert!(!sign(b"another").verify(key.public(), &result), "{key:?} {scheme:?}");
            assert!(!operation.verify(other.public(), &result), "{key:?} {scheme:?} with {other:?}");
            let mut flipped = result.to_vec();
            flipped[result.len() / 2] ^= 1;
            assert!(!operation.verify(key.public(), &flipped), "{key:?} {scheme:?}");
            assert!(!operation.verify(key.public(), &result[1..]), "{key:?} {scheme:?}");
            assert!(!operation.verify(key.public(), b""), "{key:?} {scheme:?}");
        }
    }
}
