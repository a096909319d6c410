//! Many threads at once: submitting, polling, dropping at random, with all key types mixed.

use crate::support::{Recorder, all_keys, count, schemes_of, settings, soon, start};
use boring::rsa::Padding;
use quadrille_engine::{Engine, Key, KeyType, Operation, OperationError, Policy, Scalar, Settings};
use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

const SUBMITTERS: u64 = 8;
const ROUNDS: usize = 120;

#[derive(Default)]
struct Tally {
    accepted: AtomicUsize,
    dropped: AtomicUsize,
    refused: AtomicUsize,
}

#[test]
fn without_a_delay() {
    stress(Policy::default(), 64);
}

#[test]
fn with_a_delay() {
    stress(Policy { poll_delay: Duration::from_millis(1), batch: count(8), ..Policy::default() }, 64);
}

#[test]
fn with_few_places() {
    stress(Policy::default(), 4);
}

fn stress(policy: Policy, capacity: usize) {
    let seen = Recorder::default();
    let engine = start(Settings { policy, ..settings(3, capacity) }, Scalar, seen.clone());
    let tally = Arc::new(Tally::default());
    let keys: Vec<_> = all_keys().into_iter().filter(is_quick).collect();
    let expected = Arc::new(keys.iter().filter_map(expected).collect::<HashMap<_, _>>());
    let submitters: Vec<_> = (1..=SUBMITTERS)
        .map(|seed| {
            let (engine, tally, keys, expected) =
                (engine.clone(), Arc::clone(&tally), keys.clone(), Arc::clone(&expected));
            std::thread::spawn(move || submit(&engine, &keys, &expected, &tally, seed))
        })
        .collect();
    soon(move || submitters.into_iter().for_each(|submitter| submitter.join().unwrap()));

    assert!(engine.depths().iter().all(|depth| depth.waiting == 0 && depth.oldest.is_none()));
    drop(engine);
    let (accepted, dropped) = (tally.accepted.load(Ordering::SeqCst), tally.dropped.load(Ordering::SeqCst));
    assert_eq!(seen.shed(), tally.refused.load(Ordering::SeqCst));
    assert!(seen.withdrawn() <= dropped);
    assert_eq!(
        seen.sum(|batch| batch.operations),
        accepted - seen.withdrawn(),
        "each operation is computed once or withdrawn"
    );
    assert_eq!(seen.sum(|batch| batch.recomputed + batch.failed), 0);
    assert!(accepted > ROUNDS && dropped > ROUNDS / 2, "the test has covered both cases");
}

/// Ciphertext and plaintext.
type Pair = (Vec<u8>, Vec<u8>);

/// Large keys would only slow down the test.
fn is_quick(key: &Key) -> bool {
    !matches!(key.key_type(), KeyType::Rsa { bits: 3072.. })
}

/// Returns an operation with a known result: decryption for RSA.
fn expected(key: &Key) -> Option<(KeyType, Pair)> {
    let rsa = key.pkey().rsa().ok()?;
    let mut plaintext = vec![7; rsa.size() as usize];
    plaintext[0] = 0;
    let mut ciphertext = vec![0; plaintext.len()];
    rsa.public_encrypt(&plaintext, &mut ciphertext, Padding::NONE).unwrap();
    Some((key.key_type(), (ciphertext, plaintext)))
}

fn submit(engine: &Engine, keys: &[Key], expected: &HashMap<KeyType, Pair>, tally: &Tally, seed: u64) {
    let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut below = |end: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % end
    };
    let mut held = Vec::new();
    for _ in 0..ROUNDS {
        let key = &keys[below(keys.len())];
        let known = expected.get(&key.key_type());
        let operation = match known {
            Some((ciphertext, _)) => Operation::decrypt(ciphertext),
            None => Operation::sign(schemes_of(key)[0], b"message").unwrap(),
        };
        match engine.enqueue(key, operation) {
            Ok(completion) => {
                tally.accepted.fetch_add(1, Ordering::SeqCst);
                held.push((completion, known));
            }
            Err(error) => {
                assert_eq!(error, OperationError::QueueFull);
                tally.refused.fetch_add(1, Ordering::SeqCst);
            }
        }
        if below(3) > 0 {
            engine.flush();
        }
        if held.is_empty() || below(2) == 0 {
            continue;
        }
        let (completion, known) = held.swap_remove(below(held.len()));
        if below(2) == 0 {
            tally.dropped.fetch_add(1, Ordering::SeqCst);
            drop(completion);
        } else {
            let bytes = completion.wait().expect("a result").bytes;
            assert!(known.is_none_or(|(_, plaintext)| *bytes == *plaintext));
        }
    }
    for (completion, known) in held {
        let bytes = completion.wait().expect("a result").bytes;
        assert!(known.is_none_or(|(_, plaintext)| *bytes == *plaintext));
    }
}
