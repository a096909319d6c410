//! Wakers are foreign code: they may drop the owners of other completions, panic, or own the engine itself.

use crate::support::{Gate, PATIENCE, rsa1024, settings, sign, soon, start};
use quadrille_engine::{Completion, Engine, Scalar, Unobserved};
use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    task::{Context, Poll, Wake, Waker},
};

#[derive(Default)]
struct Counted(AtomicUsize);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll(completion: &mut Completion, waker: &Waker) -> bool {
    pin!(completion).poll(&mut Context::from_waker(waker)).is_ready()
}

#[test]
fn the_last_waker_wins() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 8), gate, Unobserved);
    let key = rsa1024();
    let mut completion = engine.submit(&key, sign(&key)).unwrap();
    let wakers: [Arc<Counted>; 3] = Default::default();
    assert!(!poll(&mut completion, &Arc::clone(&wakers[0]).into()));
    open.entered(1);
    assert!(!poll(&mut completion, &Arc::clone(&wakers[1]).into()), "while it is computed");
    assert!(!poll(&mut completion, &Arc::clone(&wakers[2]).into()));
    open.open();
    drop(engine);
    assert_eq!(wakers.each_ref().map(|waker| waker.0.load(Ordering::SeqCst)), [0, 0, 1]);
    let result = pin!(completion).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(result, Poll::Ready(Ok(_))));
}

/// Holds a completion, as the waker of a task does whose future awaits one.
struct Task {
    _waits_for: Mutex<Option<Completion>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_that_is_dropped_may_drop_another_completion() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 8), gate, Unobserved);
    let key = rsa1024();
    let submit = || engine.submit(&key, sign(&key)).unwrap();
    let held = submit();
    open.entered(1);
    let task = |completion| Waker::from(Arc::new(Task { _waits_for: Mutex::new(Some(completion)) }));

    let (mut replaced, inner) = (submit(), submit());
    let first = task(inner);
    poll(&mut replaced, &first);
    drop(first);
    let (mut replaced, depths) = soon({
        let engine = engine.clone();
        move || {
            poll(&mut replaced, Waker::noop());
            (replaced, engine.depths())
        }
    });
    assert_eq!(depths[0].waiting, 1, "the inner completion was dropped");

    let inner = submit();
    poll(&mut replaced, &task(inner));
    let depths = soon({
        let engine = engine.clone();
        move || {
            drop(replaced);
            engine.depths()
        }
    });
    assert_eq!(depths[0].waiting, 0, "both were dropped");
    open.open();
    held.wait().unwrap();
}

struct Panicking;

impl Wake for Panicking {
    fn wake(self: Arc<Self>) {
        panic!("on purpose: a waker");
    }
}

#[test]
fn a_waker_that_panics_does_no_harm() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 8), gate, Unobserved);
    let key = rsa1024();
    let held = engine.submit(&key, sign(&key)).unwrap();
    open.entered(1);
    let mut batch: Vec<_> = (0..4).map(|_| engine.enqueue(&key, sign(&key)).unwrap()).collect();
    let panicking = Waker::from(Arc::new(Panicking));
    poll(&mut batch[0], &panicking);
    poll(&mut batch[2], &panicking);
    open.open();
    held.wait().unwrap();
    for completion in batch {
        soon(move || completion.wait()).expect("a signature");
    }
    soon(move || engine.submit(&key, sign(&key)).unwrap().wait()).expect("the compute thread continues");
}

/// Drops the last engine when it is woken, on the compute thread.
struct LastOwner(Mutex<Option<Engine>>, Sender<()>);

impl Wake for LastOwner {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
        self.1.send(()).unwrap();
    }
}

#[test]
fn the_last_engine_may_be_dropped_by_a_waker() {
    let (done, wait): (_, Receiver<()>) = mpsc::channel();
    let (gate, open) = Gate::new();
    let engine = start(settings(2, 8), gate, Unobserved);
    let key = rsa1024();
    let mut completion = engine.submit(&key, sign(&key)).unwrap();
    open.entered(1);
    poll(&mut completion, &Arc::new(LastOwner(Mutex::new(Some(engine)), done)).into());
    open.open();
    wait.recv_timeout(PATIENCE).expect("the engine stops");
    completion.wait().expect("a signature");
}

#[test]
fn polled_after_it_was_ready_it_does_not_panic() {
    let engine = start(settings(1, 8), Scalar, Unobserved);
    let key = rsa1024();
    let mut completion = engine.submit(&key, sign(&key)).unwrap();
    drop(engine);
    assert!(poll(&mut completion, Waker::noop()));
    assert!(poll(&mut completion, Waker::noop()), "an error, not a panic");
}
