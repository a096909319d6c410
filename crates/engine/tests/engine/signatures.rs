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
