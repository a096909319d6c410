//! Backends that fail, panic, forget jobs or return wrong results: every operation still gets its right result.

use crate::support::{Recorder, ec_p384, pkcs1, rsa1024, settings, sign, soon, start};
use boring::rsa::Padding;
use quadrille_engine::{
    Backend, BatchReport, Engine, Job, Key, KeyType, Observer, Operation, OperationError, Scalar, Zeroizing,
};

/// Computes right results and spoils some.
struct Spoilt {
    /// Selects the jobs to spoil by their place in the batch.
    client: fn(usize) -> bool,
    how: fn(&mut Job<'_>),
}

impl Backend for Spoilt {
    fn name(&self) -> &'static str {
        "spoilt"
    }

    fn width(&self, _: KeyType) -> usize {
        1
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        for (index, job) in batch.iter_mut().enumerate() {
            if (self.client)(index) {
                (self.how)(job);
            } else {
                job.finish(right(job));
            }
        }
    }

    fn verifies(&self) -> bool {
        false
    }
}

fn right(job: &Job<'_>) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    let input = job.rsa_input()?;
    let mut output = Zeroizing::new(vec![0; input.len()]);
    let rsa = job.key().pkey().rsa().map_err(|_| OperationError::Failed)?;
    rsa.private_encrypt(&input, &mut output, Padding::NONE).map_err(|_| OperationError::Failed)?;
    Ok(output)
}

/// Runs eight signatures and eight decryptions, each of which must be right, and returns the recorded counts.
fn run(client: fn(usize) -> bool, how: fn(&mut Job<'_>)) -> (usize, usize, usize) {
    let seen = Recorder::default();
    let engine = start(settings(1, 64), Spoilt { client, how }, seen.clone());
    soon(move || {
        let key = rsa1024();
        check(&engine, &key, || pkcs1(b"message"), &expected_signature(&key));
        let (ciphertext, plaintext) = encrypted(&key);
        check(&engine, &key, || Operation::decrypt(&ciphertext), &plaintext);
    });
    (seen.sum(|b| b.operations), seen.sum(|b| b.recomputed), seen.sum(|b| b.failed))
}

fn check(engine: &Engine, key: &Key, operation: impl Fn() -> Operation, expected: &[u8]) {
    let batch: Vec<_> = (0..8).map(|_| engine.enqueue(key, operation()).unwrap()).collect();
    engine.flush();
    for completion in batch {
        assert_eq!(*completion.wait().expect("a result").bytes, expected, "no wrong result is released");
    }
}

fn expected_signature(key: &Key) -> Vec<u8> {
    let engine = start(settings(1, 8), Scalar, Recorder::default());
    engine.submit(key, pkcs1(b"message")).unwrap().wait().unwrap().bytes.to_vec()
}

fn encrypted(key: &Key) -> (Vec<u8>, Vec<u8>) {
    let rsa = key.pkey().rsa().unwrap();
    let plaintext = vec![1; rsa.size() as usize - 1];
    let plaintext = [&[0], &plaintext[..]].concat();
    let mut ciphertext = vec![0; plaintext.len()];
    rsa.public_encrypt(&plaintext, &mut ciphertext, Padding::NONE).unwrap();
    (ciphertext, plaintext)
}

const EVERY: fn(usize) -> bool = |_| true;
const NONE: fn(usize) -> bool = |_| false;

#[test]
fn right_results_leave_as_they_are() {
    assert_eq!(run(NONE, |_| ()), (16, 0, 0));
}

#[test]
fn wrong_results_are_recomputed() {
    let flipped = |job: &mut Job<'_>| {
        let mut bytes = right(job).unwrap();
        bytes[100] ^= 1;
        job.finish(Ok(bytes));
    };
    assert_eq!(run(EVERY, flipped), (16, 16, 0));
}

#[test]
fn results_of_wrong_length_or_size_are_recomputed() {
    assert_eq!(run(EVERY, |job| job.finish(Ok(Vec::new().into()))), (16, 16, 0));
    assert_eq!(run(EVERY, |job| job.finish(Ok(vec![0xff; 128].into()))), (16, 16, 0));
    assert_eq!(run(EVERY, |job| job.finish(Ok(vec![0; 100_000].into()))), (16, 16, 0));
}

#[test]
fn forgotten_and_refused_jobs_are_recomputed() {
    assert_eq!(run(EVERY, |_| ()), (16, 16, 0));
    assert_eq!(run(EVERY, |job| job.finish(Err(OperationError::Failed))), (16, 16, 0));
    assert_eq!(run(EVERY, |job| job.finish(Err(OperationError::InvalidInput))), (16, 16, 0), "wrong error");
}

#[test]
fn only_the_first_result_counts() {
    let twice = |job: &mut Job<'_>| {
        job.finish(right(job));
        job.finish(Ok(vec![0; 128].into()));
    };
    assert_eq!(run(EVERY, twice), (16, 0, 0));
}

#[test]
fn a_panic_costs_only_the_jobs_that_were_not_finished() {
    let (operations, recomputed, failed) = run(|index| index == 2, |_| panic!("on purpose: a backend"));
    assert_eq!((operations, failed), (16, 0));
    assert!(
        (1..=14).contains(&recomputed),
        "of at most sixteen, two or more had been finished: {recomputed}"
    );
}

/// Panics in every method that is called after the start.
struct Hopeless;

impl Backend for Hopeless {
    fn name(&self) -> &'static str {
        "hopeless"
    }

    fn width(&self, _: KeyType) -> usize {
        panic!("on purpose: width")
    }

    fn prepare(&self, _: &Key) {
        panic!("on purpose: prepare")
    }

    fn compute(&self, _: &mut [Job<'_>]) {
        panic!("on purpose: compute")
    }

    fn verifies(&self) -> bool {
        false
    }
}

/// Panics on every notification.
struct Shocked;

impl Observer for Shocked {
    fn batch(&self, _: &BatchReport) {
        panic!("on purpose: batch")
    }

    fn shed(&self, _: KeyType) {
        panic!("on purpose: shed")
    }

    fn withdrawn(&self, _: KeyType) {
        panic!("on purpose: withdrawn")
    }
}

#[test]
fn panics_everywhere_lose_neither_operations_nor_threads() {
    let engine = start(settings(2, 1), Hopeless, Shocked);
    soon(move || {
        for key in [rsa1024(), ec_p384(), crate::support::ec_p256()] {
            engine.prepare(&key);
            for _ in 0..6 {
                engine.submit(&key, sign(&key)).unwrap().wait().expect("a signature");
            }
        }
        let key = rsa1024();
        let completions: Vec<_> = (0..100).map(|_| engine.enqueue(&key, sign(&key))).collect();
        assert!(completions.iter().any(Result::is_err), "one place, and no thread was woken");
        drop(completions);
    });
}
