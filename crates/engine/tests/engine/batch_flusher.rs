//! One wake-up of the engine for each turn of an event loop.

use crate::support::{Gate, rsa1024, rsa2048, settings, sign, start, until_asleep};
use quadrille_engine::{
    BatchFlusher, BatchReport, Key, KeyType, MlDsa, Observer, Operation, Scalar, SignatureScheme, Unobserved,
};
use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, ThreadId},
};

/// Event loop that counts the wake-ups of the flusher.
#[derive(Default)]
struct EventLoop(AtomicUsize);

impl Wake for EventLoop {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn end_turn(flusher: Pin<&mut BatchFlusher>, event_loop: &Arc<EventLoop>) {
    let waker = Arc::clone(event_loop).into();
    assert!(flusher.poll(&mut Context::from_waker(&waker)).is_pending());
}

#[test]
fn a_turn_is_flushed_once_when_it_ends() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 8), gate, Unobserved);
    let (key, event_loop) = (rsa1024(), Arc::<EventLoop>::default());
    let mut flusher = pin!(BatchFlusher::new(engine.clone()));
    end_turn(flusher.as_mut(), &event_loop);
    let completions: Vec<_> = (0..3)
        .map(|_| {
            let completion = engine.enqueue(&key, sign(&key)).unwrap();
            BatchFlusher::schedule(&engine);
            completion
        })
        .collect();
    assert_eq!(event_loop.0.load(Ordering::SeqCst), 1, "three operations, one wake-up");
    assert_eq!(
        engine.depths().iter().map(|depth| depth.waiting).sum::<usize>(),
        3,
        "operations wait for the end of the turn"
    );
    end_turn(flusher.as_mut(), &event_loop);
    open.entered(1);
    BatchFlusher::schedule(&engine);
    assert_eq!(event_loop.0.load(Ordering::SeqCst), 2, "the next turn has its own");
    drop(completions);
    // Otherwise the engine would wait, on drop, for a thread that waits for the gate.
    drop(open);
}

#[test]
fn without_an_event_loop_an_operation_goes_at_once() {
    let (gate, open) = Gate::new();
    let engine = start(settings(1, 8), gate, Unobserved);
    let (key, event_loop) = (rsa1024(), Arc::<EventLoop>::default());
    {
        let mut flusher = pin!(BatchFlusher::new(engine.clone()));
        end_turn(flusher.as_mut(), &event_loop);
    }
    let _completion = engine.enqueue(&key, sign(&key)).unwrap();
    BatchFlusher::schedule(&engine);
    open.entered(1);
    assert_eq!(event_loop.0.load(Ordering::SeqCst), 0, "an event loop that has ended is not woken");
    drop(open);
}

/// Records the threads that compute.
#[derive(Clone, Default)]
struct ComputedBy(Arc<Mutex<Vec<ThreadId>>>);

impl Observer for ComputedBy {
    fn batch(&self, _: &BatchReport) {
        self.0.lock().unwrap().push(thread::current().id());
    }
}

#[test]
fn a_lone_operation_is_computed_by_the_event_loop_and_several_are_not() {
    computes_lone_operations(&rsa2048(), SignatureScheme::RsaPssSha256);
    let ml_dsa = Key::generate(KeyType::MlDsa(MlDsa::MlDsa44)).unwrap();
    computes_lone_operations(&ml_dsa, SignatureScheme::MlDsa(MlDsa::MlDsa44));
}

fn computes_lone_operations(key: &Key, scheme: SignatureScheme) {
    let by = ComputedBy::default();
    let engine = start(settings(1, 8), Scalar, by.clone());
    let event_loop = Arc::<EventLoop>::default();
    let mut flusher = pin!(BatchFlusher::new(engine.clone()));
    end_turn(flusher.as_mut(), &event_loop);
    let turn = |operations: usize| {
        let submit = |_| {
            let completion = engine.enqueue(key, Operation::sign(scheme, b"content").unwrap()).unwrap();
            BatchFlusher::schedule(&engine);
            completion
        };
        (0..operations).map(submit).collect::<Vec<_>>()
    };
    until_asleep(1);
    let mut lone = turn(1);
    end_turn(flusher.as_mut(), &event_loop);
    assert_eq!(*by.0.lock().unwrap(), [thread::current().id()]);
    let done = pin!(lone.remove(0)).poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(done, Poll::Ready(Ok(_))), "it is ready when the turn has ended");

    let several = turn(3);
    end_turn(flusher.as_mut(), &event_loop);
    for completion in several {
        completion.wait().unwrap();
    }
    // A batch is reported after its results have been handed over.
    until_asleep(1);
    let by = by.0.lock().unwrap();
    let me = thread::current().id();
    assert!(by.len() > 1 && by[1..].iter().all(|thread| *thread != me), "{by:?}");
}
