//! Guarantees of a completion: a result, or a free place in the queue.

use crate::support::{Gate, Recorder, count, pkcs1, rsa1024, settings, sign, soon, start, until_asleep};
use quadrille_engine::{OperationError, Policy, Scalar, Settings, Unobserved};
use std::time::Duration;

#[test]
fn dropped_before_it_begins_it_gives_its_place_back() {
    let (gate, open) = Gate::new();
    let seen = Recorder::default();
    let engine = start(settings(1, 2), gate, seen.clone());
    let key = rsa1024();
    let submit = || engine.submit(&key, sign(&key));

    let first = submit().unwrap();
    open.entered(1);
    let (second, third) = (submit().unwrap(), submit().unwrap());
    assert_eq!(submit().err(), Some(OperationError::QueueFull));
    assert_eq!(seen.shed(), 1);
    drop(second);
    assert_eq!(seen.withdrawn(), 1);
    let fourth = submit().expect("a place is free again");
    assert_eq!(submit().err(), Some(OperationError::QueueFull), "but only one");

    open.open();
    for completion in [first, third, fourth] {
        completion.wait().expect("a signature");
    }
    drop(engine);
    assert_eq!(seen.sizes(), [1, 2], "the withdrawn operation was not computed");
}

#[test]
fn dropped_while_it_is_computed_it_does_no_harm() {
    let (gate, open) = Gate::new();
    let seen = Recorder::default();
    let engine = start(settings(1, 8), gate, seen.clone());
    let key = rsa1024();
    let left = engine.enqueue(&key, sign(&key)).unwrap();
    let stays = engine.enqueue(&key, sign(&key)).unwrap();
    engine.flush();
    open.entered(1);
    drop(left);
    open.open();
    stays.wait().expect("a signature");
    engine.submit(&key, sign(&key)).unwrap().wait().expect("the engine continues");
    drop(engine);
    assert_eq!(seen.withdrawn(), 0, "the operation had begun");
    assert_eq!(seen.sum(|batch| batch.failed), 0);
}

#[test]
fn many_withdrawals_leave_nothing() {
    const ROUNDS: usize = 20_000;
    let (gate, open) = Gate::new();
    let seen = Recorder::default();
    let engine = start(settings(1, 4), gate, seen.clone());
    let key = rsa1024();
    let held = engine.submit(&key, sign(&key)).unwrap();
    open.entered(1);
    let waiting = engine.submit(&key, sign(&key)).unwrap();
    for _ in 0..ROUNDS {
        drop(engine.enqueue(&key, sign(&key)).expect("its place is free"));
    }
    assert_eq!(engine.depths()[0].waiting, 1);
    assert_eq!(seen.withdrawn(), ROUNDS);
    open.open();
    held.wait().unwrap();
    waiting.wait().unwrap();
}

#[test]
fn waiting_flushes() {
    let engine = start(settings(1, 8), Scalar, Unobserved);
    let key = rsa1024();
    until_asleep(1);
    let outcome = soon(move || engine.enqueue(&key, sign(&key)).unwrap().wait()).unwrap();
    assert_eq!(outcome.batch, 1);
}

#[test]
fn an_engine_that_is_dropped_computes_what_waits() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 64), gate, Unobserved);
    let key = rsa1024();
    let held = engine.submit(&key, sign(&key)).unwrap();
    open.entered(1);
    let waiting: Vec<_> = (0..20).map(|_| engine.enqueue(&key, sign(&key)).unwrap()).collect();
    let dropping = std::thread::spawn(move || drop(engine));
    open.open();
    for completion in std::iter::once(held).chain(waiting) {
        completion.wait().expect("a signature");
    }
    dropping.join().unwrap();
}

#[test]
fn an_engine_that_is_dropped_does_not_wait_for_batches_to_fill() {
    let policy = Policy { poll_delay: Duration::MAX, batch: count(8), ..Policy::default() };
    let engine = start(Settings { policy, ..settings(3, 64) }, Scalar, Unobserved);
    let key = rsa1024();
    let waiting = engine.submit(&key, sign(&key)).unwrap();
    // One of them waits for the batch indefinitely.
    until_asleep(3);
    soon(move || drop(engine));
    soon(move || waiting.wait()).expect("a signature");
}

#[test]
fn outcomes_show_neither_results_nor_keys() {
    let engine = start(settings(1, 8), Scalar, Unobserved);
    let key = rsa1024();
    let outcome = engine.submit(&key, pkcs1(b"message")).unwrap().wait().unwrap();
    let shown = format!("{outcome:?}");
    assert!(shown.starts_with("Outcome { waited: ") && !shown.contains("bytes"), "{shown}");
    assert_eq!(format!("{key:?}"), "Key(rsa1024)");
}
