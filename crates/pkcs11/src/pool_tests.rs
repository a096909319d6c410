//! Pool whose operations wait for a condition, or have none.

use super::{Cause, Pool, Ran, Refused, Work};
use std::{
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(600);

/// Gate that operations wait for.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Gate {
    fn wait(&self) {
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed(Cause),
}

struct Step {
    gate: Option<Arc<Gate>>,
    ran: Ran,
    ended: Mutex<Option<mpsc::Sender<End>>>,
}

impl Step {
    fn end(&self, end: End) {
        if let Some(ended) = self.ended.lock().unwrap().take() {
            let _ = ended.send(end);
        }
    }
}

impl Work<usize> for Step {
    fn run(&self, _: &mut usize) -> Ran {
        if let Some(gate) = &self.gate {
            gate.wait();
        }
        if self.ran == Ran::Done {
            self.end(End::Done);
        }
        self.ran
    }

    fn fail(&self, cause: Cause) {
        self.end(End::Failed(cause));
    }

    fn is_over(&self) -> bool {
        self.ended.lock().unwrap().is_none()
    }
}

fn step(gate: Option<&Arc<Gate>>, ran: Ran) -> (Arc<Step>, mpsc::Receiver<End>) {
    let (sender, receiver) = mpsc::channel();
    (Arc::new(Step { gate: gate.cloned(), ran, ended: Mutex::new(Some(sender)) }), receiver)
}

fn pool(most: usize) -> (Pool<usize>, mpsc::Receiver<bool>) {
    let (sender, observed) = mpsc::channel();
    let sender = Mutex::new(sender);
    let threads = AtomicUsize::new(0);
    let make = Box::new(move || threads.fetch_add(1, Ordering::Relaxed));
    let observe = Box::new(move |hangs| {
        let _ = sender.lock().unwrap().send(hangs);
    });
    (Pool::new("test".into(), Arc::new(AtomicUsize::new(most)), make, observe), observed)
}

#[test]
fn operations_that_hang_fail_at_their_deadline_and_later_ones_at_once() {
    let (pool, observed) = pool(1);
    let gate = Arc::new(Gate::default());
    let (stuck, ended) = step(Some(&gate), Ran::Done);
    pool.submit(stuck, SHORT).unwrap();
    let (queued, queued_ended) = step(None, Ran::Done);
    pool.submit(queued, SHORT).unwrap();
    assert_eq!(ended.recv().unwrap(), End::Failed(Cause::Deadline));
    assert_eq!(queued_ended.recv().unwrap(), End::Failed(Cause::Deadline));
    assert!(observed.recv().unwrap(), "it hangs");
    let (refused, _ended) = step(None, Ran::Done);
    assert_eq!(pool.submit(refused, LONG), Err(Refused::Hanging));
    gate.open();
    assert!(!observed.recv().unwrap(), "it responds again");
    let (after, ended) = step(None, Ran::Done);
    pool.submit(after, LONG).unwrap();
    assert_eq!(ended.recv().unwrap(), End::Done);
}

#[test]
fn one_hanging_thread_does_not_stop_the_others() {
    let (pool, _observed) = pool(2);
    let gate = Arc::new(Gate::default());
    let (stuck, ended) = step(Some(&gate), Ran::Done);
    pool.submit(stuck, SHORT).unwrap();
    assert_eq!(ended.recv().unwrap(), End::Failed(Cause::Deadline));
    // The first is a trial; after it the pool does not count as hanging.
    for _ in 0..3 {
        let (other, ended) = step(None, Ran::Done);
        pool.submit(other, LONG).unwrap();
        assert_eq!(ended.recv().unwrap(), End::Done);
        let until = std::time::Instant::now() + LONG;
        while pool.0.state().threads.values().flatten().count() > 1 {
            assert!(std::time::Instant::now() < until);
            std::thread::yield_now();
        }
    }
    gate.open();
}

#[test]
fn threads_without_room_pass_their_operation_on() {
    let (pool, _observed) = pool(8);
    let gate = Arc::new(Gate::default());
    let (first, ended) = step(Some(&gate), Ran::Done);
    pool.submit(first, LONG).unwrap();
    // Its own thread has no room; no other thread can take it until the first is done, and then it has no room either.
    let (second, second_ended) = step(None, Ran::NoRoom);
    pool.submit(second, LONG).unwrap();
    gate.open();
    assert_eq!(ended.recv().unwrap(), End::Done);
    assert_eq!(second_ended.recv().unwrap(), End::Failed(Cause::NoRoom));
    assert_eq!(pool.0.most.load(Ordering::Relaxed), 1);
}

#[test]
fn full_queues_refuse() {
    let (pool, _observed) = pool(1);
    let gate = Arc::new(Gate::default());
    let submit = || pool.submit(step(Some(&gate), Ran::Done).0, LONG);
    let accepted = (0..super::CAPACITY + 8).filter(|_| submit().is_ok()).count();
    assert!((super::CAPACITY..=super::CAPACITY + 1).contains(&accepted), "{accepted}");
    assert_eq!(submit(), Err(Refused::Full));
    gate.open();
}
