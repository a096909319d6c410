//! Queue of the handshakes that take steps on an event loop, after all other tasks.

use futures_util::task::AtomicWaker;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Number of handshakes that get a step together: as many as lanes compute together, and not more, because all others
/// wait for them.
const TOGETHER: usize = 8;

/// Handshakes waiting for a step on one event loop.
#[derive(Default)]
pub(super) struct StepQueue {
    waiting: Mutex<VecDeque<Waiting>>,
    /// Waker of the task that gives steps.
    giver: AtomicWaker,
    /// Whether a handshake that goes first has submitted a private-key operation since the last step.
    compute_first: AtomicBool,
}

struct Waiting {
    place: Arc<Place>,
    /// Time since the epoch of `Admission`.
    since: Duration,
}

/// A handshake's place in the queue. When the handshake is dropped, its place is skipped.
#[derive(Default)]
pub(super) struct Place {
    waker: AtomicWaker,
    waits: AtomicBool,
    may_step: AtomicBool,
}

impl Place {
    /// Returns whether it has a step, and uses it.
    pub(super) fn take_step(&self) -> bool {
        self.may_step.swap(false, Ordering::AcqRel)
    }
}

impl StepQueue {
    /// Queues this place since `now`, unless it is queued already; its task is woken when it has a step.
    pub(super) fn wait(&self, place: &Arc<Place>, waker: &Waker, now: Duration) {
        place.waker.register(waker);
        if !place.waits.swap(true, Ordering::AcqRel) {
            self.waiting().push_back(Waiting { place: Arc::clone(place), since: now });
            self.giver.wake();
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    /// Becomes ready when a handshake waits.
    pub(super) fn poll_waiting(&self, context: &mut Context<'_>) -> Poll<()> {
        self.giver.register(context.waker());
        if self.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Gives a step to the first [`TOGETHER`] places; returns since when the last of them has waited.
    pub(super) fn give(&self) -> Option<Duration> {
        let mut last = None;
        for Waiting { place, since } in std::iter::from_fn(|| self.next()).take(TOGETHER) {
            place.may_step.store(true, Ordering::Release);
            place.waits.store(false, Ordering::Release);
            place.waker.wake();
            last = Some(since);
        }
        last
    }

    /// Records that a handshake that goes first has submitted a private-key operation.
    pub(super) fn expect_compute(&self) {
        self.compute_first.store(true, Ordering::Relaxed);
    }

    /// Yields to a compute thread that shares its core with this event loop. Otherwise the kernel may schedule it
    /// milliseconds later.
    pub(super) fn yield_to_compute(&self) {
        if self.compute_first.swap(false, Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// Returns the next place whose handshake was not dropped.
    fn next(&self) -> Option<Waiting> {
        let mut waiting = self.waiting();
        loop {
            let next = waiting.pop_front()?;
            if Arc::strong_count(&next.place) > 1 {
                return Some(next);
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    #[test]
    fn steps_are_taken_in_order_some_at_a_time() {
        let steps = StepQueue::default();
        let places: Vec<Arc<Place>> = (0..20).map(|_| Arc::default()).collect();
        for (time, place) in places.iter().enumerate() {
            steps.wait(place, Waker::noop(), at(time as u64));
        }
        // A task that is woken for another reason neither loses its place nor gets another.
        steps.wait(&places[0], Waker::noop(), at(50));
        let with_step =
            |from: usize, to: usize| places[from..to].iter().filter(|place| place.take_step()).count();
        for (last, from, to) in [(7, 0, 8), (15, 8, 16), (19, 16, 20)] {
            assert_eq!(steps.give(), Some(at(last)));
            assert_eq!((with_step(from, to), with_step(0, 20)), (to - from, 0));
        }
        assert_eq!((steps.give(), steps.is_empty()), (None, true));
        steps.wait(&places[0], Waker::noop(), at(60));
        assert_eq!((steps.give(), with_step(0, 20)), (Some(at(60)), 1));
    }

    #[test]
    fn a_dropped_handshake_takes_no_step() {
        let steps = StepQueue::default();
        for _ in 0..100 {
            steps.wait(&Arc::default(), Waker::noop(), at(0));
        }
        let place = Arc::default();
        steps.wait(&place, Waker::noop(), at(1));
        assert_eq!((steps.give(), place.take_step()), (Some(at(1)), true));
    }
}
