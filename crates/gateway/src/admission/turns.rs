//! The queue of those who take turns on an event loop: handshakes that let all others go first.

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

/// Who gets a turn together: as many as lanes compute together, and no more, because everybody else waits for them.
const TOGETHER: usize = 8;

/// Who waits for a turn on one event loop.
#[derive(Default)]
pub(super) struct Turns {
    waiting: Mutex<VecDeque<Waiting>>,
    /// Of the one that gives turns.
    giver: AtomicWaker,
    /// Whether somebody who goes first has handed in a private-key operation since the last turn.
    compute_first: AtomicBool,
}

struct Waiting {
    place: Arc<Place>,
    /// Of the admission's time.
    since: Duration,
}

/// That of one handshake in the queue. When its handshake is dropped, the queue forgets it.
#[derive(Default)]
pub(super) struct Place {
    waker: AtomicWaker,
    waits: AtomicBool,
    has_turn: AtomicBool,
}

impl Place {
    /// Whether it has a turn, which it has used then.
    pub(super) fn take_turn(&self) -> bool {
        self.has_turn.swap(false, Ordering::AcqRel)
    }
}

impl Turns {
    /// Wakes the task of this place when it has a turn; it waits since `now`, unless it has waited already.
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

    /// Ready when somebody waits.
    pub(super) fn poll_waiting(&self, context: &mut Context<'_>) -> Poll<()> {
        self.giver.register(context.waker());
        if self.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }

    /// Gives the first of those who wait a turn, as many as go together; since when the last of them has waited.
    pub(super) fn give(&self) -> Option<Duration> {
        let mut last = None;
        for Waiting { place, since } in std::iter::from_fn(|| self.next()).take(TOGETHER) {
            place.has_turn.store(true, Ordering::Release);
            place.waits.store(false, Ordering::Release);
            place.waker.wake();
            last = Some(since);
        }
        last
    }

    /// Somebody who goes first has handed in a private-key operation.
    pub(super) fn expect_compute(&self) {
        self.compute_first.store(true, Ordering::Relaxed);
    }

    /// A compute thread that shares its core with this event loop has it now rather than when the kernel thinks so, which
    /// may be milliseconds later.
    pub(super) fn yield_to_compute(&self) {
        if self.compute_first.swap(false, Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }

    /// The next whose handshake was not given up.
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
    fn turns_come_in_order_some_at_a_time() {
        let turns = Turns::default();
        let places: Vec<Arc<Place>> = (0..20).map(|_| Arc::default()).collect();
        for (time, place) in places.iter().enumerate() {
            turns.wait(place, Waker::noop(), at(time as u64));
        }
        // Who is woken by something else meanwhile neither loses its place nor gets another.
        turns.wait(&places[0], Waker::noop(), at(50));
        let with_turn =
            |from: usize, to: usize| places[from..to].iter().filter(|place| place.take_turn()).count();
        for (last, from, to) in [(7, 0, 8), (15, 8, 16), (19, 16, 20)] {
            assert_eq!(turns.give(), Some(at(last)));
            assert_eq!((with_turn(from, to), with_turn(0, 20)), (to - from, 0));
        }
        assert_eq!((turns.give(), turns.is_empty()), (None, true));
        turns.wait(&places[0], Waker::noop(), at(60));
        assert_eq!((turns.give(), with_turn(0, 20)), (Some(at(60)), 1));
    }

    #[test]
    fn who_has_left_takes_no_turn() {
        let turns = Turns::default();
        for _ in 0..100 {
            turns.wait(&Arc::default(), Waker::noop(), at(0));
        }
        let place = Arc::default();
        turns.wait(&place, Waker::noop(), at(1));
        assert_eq!((turns.give(), place.take_turn()), (Some(at(1)), true));
    }
}
