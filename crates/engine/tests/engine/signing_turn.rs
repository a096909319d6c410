//! Cheap signatures of one turn of an event loop are computed together when there are enough.

use crate::support::{Recorder, ec_p256, ed25519, settings, sign, start, verifies};
use quadrille_engine::{
    Backend, BatchFlusher, Completion, Engine, Job, Key, KeyType, Operation, OperationError, Scalar,
    SignatureScheme as S,
};
use std::{
    future::Future,
    io::Write,
    pin::Pin,
    task::{Context, Poll, Waker},
};

/// Claims eight signatures at the price of two; computes them as the scalar backend does.
struct Eight;

impl Backend for Eight {
    fn name(&self) -> &'static str {
        "eight"
    }

    fn width(&self, key_type: KeyType) -> usize {
        if key_type == KeyType::EcdsaP256 { 8 } else { 1 }
    }

    fn crossover(&self, _: KeyType) -> usize {
        2
    }

    fn compute(&self, batch: &mut [Job<'_>]) {
        Scalar.compute(batch);
    }

    fn verifies(&self) -> bool {
        true
    }
}

/// Event loop of this thread.
struct EventLoop {
    engine: Engine,
    flusher: Pin<Box<BatchFlusher>>,
    seen: Recorder,
}

impl EventLoop {
    fn new(backend: impl Backend) -> Self {
        let seen = Recorder::default();
        let engine = start(settings(1, 8), backend, seen.clone());
        let mut event_loop = Self { flusher: Box::pin(BatchFlusher::new(engine.clone())), engine, seen };
        event_loop.end_turn();
        event_loop
    }

    fn enqueue(&self, key: &Key, count: usize) -> Vec<Completion> {
        (0..count).map(|_| self.engine.enqueue(key, sign(key)).unwrap()).collect()
    }

    fn end_turn(&mut self) {
        assert!(self.flusher.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }

    /// Runs a turn with `count` signatures, and returns how many of them were computed immediately.
    fn turn(&mut self, key: &Key, count: usize) -> usize {
        let mut completions = self.enqueue(key, count);
        let in_place = completions.iter().filter(|completion| completion.is_in_place()).count();
        self.end_turn();
        for completion in &mut completions {
            assert!(matches!(poll(completion), Poll::Ready(Ok(_))), "the turn has ended");
        }
        in_place
    }

    /// Returns the backends and sizes of the batches since the last call.
    fn batches(&self) -> Vec<(&'static str, usize)> {
        self.seen.batches().iter().map(|batch| (batch.backend, batch.operations)).collect()
    }
}

fn poll(completion: &mut Completion) -> Poll<Result<Vec<u8>, OperationError>> {
    let outcome = Pin::new(completion).poll(&mut Context::from_waker(Waker::noop()));
    outcome.map_ok(|outcome| outcome.bytes.to_vec())
}

#[test]
fn signatures_wait_for_the_turns_end_after_a_turn_with_several() {
    let mut event_loop = EventLoop::new(Eight);
    let key = ec_p256();
    assert_eq!(event_loop.turn(&key, 1), 1, "no turns have been seen yet");
    assert_eq!(event_loop.turn(&key, 3), 3, "the previous turn had one");
    assert_eq!(event_loop.turn(&key, 11), 0, "the previous turn had three");
    event_loop.end_turn();
    assert_eq!(event_loop.turn(&key, 9), 0, "a turn without signatures does not count");
    for expected in [9, 4, 2] {
        assert_eq!(
            event_loop.turn(&key, 1),
            0,
            "{expected} are expected: a lone signature waits for the end of the turn"
        );
    }
    assert_eq!(event_loop.turn(&key, 1), 1);
    let mut expected = vec![("scalar", 1); 4];
    expected.extend([("eight", 11), ("eight", 8)]);
    expected.extend([("scalar", 1); 5]);
    assert_eq!(event_loop.batches(), expected);
}

#[test]
fn many_signatures_do_not_wait_for_the_turns_end() {
    let mut event_loop = EventLoop::new(Eight);
    let key = ec_p256();
    event_loop.turn(&key, 2);
    let mut completions = event_loop.enqueue(&key, 33);
    let ready = completions.iter_mut().map(poll).filter(Poll::is_ready).count();
    assert_eq!(ready, 32);
}

#[test]
fn withdrawn_signatures_are_not_computed() {
    let mut event_loop = EventLoop::new(Eight);
    let key = ec_p256();
    event_loop.turn(&key, 2);
    let mut completions = event_loop.enqueue(&key, 5);
    completions.truncate(3);
    event_loop.end_turn();
    assert!(completions.iter_mut().all(|completion| poll(completion).is_ready()));
    assert_eq!(event_loop.batches().last(), Some(&("eight", 3)));
}

#[test]
fn a_blocking_caller_does_not_wait_for_the_turns_end() {
    let mut event_loop = EventLoop::new(Eight);
    let key = ec_p256();
    event_loop.turn(&key, 2);
    let mut completions = event_loop.enqueue(&key, 4);
    let waits = completions.remove(2);
    assert!(!waits.is_in_place());
    assert!(waits.wait().is_ok());
    let submitted = event_loop.engine.submit(&key, sign(&key)).unwrap();
    assert!(submitted.is_in_place(), "a submitted operation does not wait for a turn either");
}

#[test]
fn without_lanes_or_an_event_loop_nothing_waits() {
    let mut event_loop = EventLoop::new(Eight);
    for _ in 0..3 {
        assert_eq!(event_loop.turn(&ed25519(), 5), 5);
    }
    let mut event_loop = EventLoop::new(Scalar);
    for _ in 0..3 {
        assert_eq!(event_loop.turn(&ec_p256(), 5), 5);
    }
    let engine = start(settings(1, 8), Eight, Recorder::default());
    std::thread::spawn(move || {
        for _ in 0..5 {
            assert!(engine.enqueue(&ec_p256(), sign(&ec_p256())).unwrap().is_in_place());
        }
    })
    .join()
    .expect("no panic");
}

/// Any backend of this machine: every digest's signature verifies, and no signature in lanes fails.
#[test]
fn lanes_sign_what_verifies() {
    let backend = quadrille_engine::fastest().expect("the variable is unset");
    let (name, has_lanes) = (backend.name(), backend.width(KeyType::EcdsaP256) > 1);
    if !has_lanes {
        // Bypasses the capture of test output, since the test passes.
        let _ = writeln!(std::io::stderr(), "SKIPPED: tier {name} has no lanes for ECDSA");
        return;
    }
    let mut event_loop = EventLoop::new(backend);
    let key = ec_p256();
    event_loop.engine.prepare(&key);
    event_loop.turn(&key, 8);
    for (round, scheme) in
        [S::EcdsaSha256, S::EcdsaSha1, S::EcdsaSha384, S::EcdsaSha512].into_iter().enumerate()
    {
        let messages: Vec<String> = (0..8 + round).map(|i| format!("{round} {i}")).collect();
        let operations = messages.iter().map(|message| Operation::sign(scheme, message.as_bytes()).unwrap());
        let mut completions: Vec<_> =
            operations.map(|operation| event_loop.engine.enqueue(&key, operation).unwrap()).collect();
        event_loop.end_turn();
        for (completion, message) in completions.iter_mut().zip(&messages) {
            let Poll::Ready(Ok(signature)) = poll(completion) else { panic!("no signature") };
            assert!(verifies(&key, scheme, message.as_bytes(), &signature), "{scheme:?}");
        }
    }
    let in_lanes = event_loop.seen.sum(|batch| if batch.backend == name { batch.operations } else { 0 });
    assert!(in_lanes >= 4 * 8, "{in_lanes} signatures in lanes");
    assert_eq!(event_loop.seen.sum(|batch| batch.recomputed + batch.failed), 0);
}
