//! Queue of the tasks that take steps on an event loop, after all other tasks: handshakes, and connections that
//! transfer much data.

use futures_util::task::AtomicWaker;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

/// Number of handshakes that get a step together: as many as lanes compute together, and not more, because all others
/// wait for them.
const TOGETHER: usize = 8;

/// Number of transfers that get a step together with handshakes, so that these do not take most of the CPU time.
const TRANSFERS_BESIDE_HANDSHAKES: usize = 4;

/// Number of client networks that are distinguished. Two with the same number share their steps.
const CLIENTS: usize = 1024;

/// Tasks waiting for a step on one event loop.
#[derive(Default)]
pub(super) struct StepQueue {
    waiting: Mutex<Queues>,
    /// Waker of the task that gives steps.
    giver: AtomicWaker,
    /// Whether a handshake that goes first has submitted a private-key operation since the last step.
    compute_first: AtomicBool,
    /// Number of steps that transfers got.
    transferred: AtomicU64,
    /// Number of transfers that wait.
    waiting_transfers: AtomicUsize,
}

#[derive(Default)]
struct Queues {
    first: VecDeque<Waiting>,
    others: VecDeque<Waiting>,
    transfers: TransferQueue,
}

/// Transfers that wait. The client whose last step was the longest ago is next, and of its connections again the one
/// whose last step was the longest ago: many connections do not get more steps than one.
#[derive(Default)]
struct TransferQueue {
    /// Queue of each client, in the order of its last step and its number.
    clients: BTreeMap<(u64, u16), BTreeMap<Turn, Arc<Place>>>,
    /// Number of the last step of each client; empty before the first.
    last_steps: Vec<u64>,
    /// Number of transfers that have been queued.
    arrivals: u64,
    waiting: usize,
}

/// Order of a client's connections: number of the last step, then number of the arrival.
type Turn = (u64, u64);

/// A client's network, as one of [`CLIENTS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ClientNumber(u16);

impl ClientNumber {
    /// Returns the number of the client with this hash.
    pub(super) fn of_hash(hash: u64) -> Self {
        Self((hash % CLIENTS as u64) as u16)
    }
}

/// Precedence of a handshake among those that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Precedence {
    First,
    Other,
}

/// Time since which the last handshake that got a step has waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) first: Option<Duration>,
    pub(super) others: Option<Duration>,
}

struct Waiting {
    place: Arc<Place>,
    /// Time since the epoch of `Admission`.
    since: Duration,
}

/// A task's place in the queue. When the task is dropped, its place is skipped.
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

    /// Registers the waker; returns whether the place is not queued yet.
    fn begins_to_wait(&self, waker: &Waker) -> bool {
        self.waker.register(waker);
        !self.waits.swap(true, Ordering::AcqRel)
    }

    /// Gives it a step. Returns false if its task was dropped.
    fn give(self: &Arc<Self>) -> bool {
        self.may_step.store(true, Ordering::Release);
        self.waits.store(false, Ordering::Release);
        self.waker.wake();
        Arc::strong_count(self) > 1
    }
}

impl StepQueue {
    /// Queues a handshake's place since `now`, unless it is queued already; its task is woken when it has a step.
    pub(super) fn wait(&self, place: &Arc<Place>, precedence: Precedence, waker: &Waker, now: Duration) {
        if place.begins_to_wait(waker) {
            let waiting = Waiting { place: Arc::clone(place), since: now };
            match precedence {
                Precedence::First => self.queues().first.push_back(waiting),
                Precedence::Other => self.queues().others.push_back(waiting),
            }
            self.giver.wake();
        }
    }

    /// Queues the place of a client's connection whose last step had the number `last_step`.
    pub(super) fn wait_to_transfer(
        &self,
        place: &Arc<Place>,
        client: ClientNumber,
        last_step: u64,
        waker: &Waker,
    ) {
        if place.begins_to_wait(waker) {
            let mut queues = self.queues();
            queues.transfers.push(client, last_step, Arc::clone(place));
            self.count_transfers(&queues);
            drop(queues);
            self.giver.wake();
        }
    }

    /// Returns the number of steps that transfers got so far.
    pub(super) fn transferred(&self) -> u64 {
        self.transferred.load(Ordering::Relaxed)
    }

    /// Returns the number of transfers that wait.
    pub(super) fn waiting_transfers(&self) -> usize {
        self.waiting_transfers.load(Ordering::Relaxed)
    }

    /// Returns whether a handshake waits.
    pub(super) fn has_handshakes(&self) -> bool {
        self.queues().has_handshakes()
    }

    /// Becomes ready when a task waits.
    pub(super) fn poll_waiting(&self, context: &mut Context<'_>) -> Poll<()> {
        self.giver.register(context.waker());
        let queues = self.queues();
        if queues.has_handshakes() || queues.transfers.waiting > 0 { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Gives steps to [`TOGETHER`] handshakes, among them at least one without precedence, and to the next transfers:
    /// `transfers`, or [`TRANSFERS_BESIDE_HANDSHAKES`].
    pub(super) fn give(&self, transfers: usize) -> Given {
        let mut queues = self.queues();
        let (first, count) = give_to(&mut queues.first, TOGETHER);
        let (others, more) = give_to(&mut queues.others, (TOGETHER - count).max(1));
        let mut transfers = if count + more > 0 { TRANSFERS_BESIDE_HANDSHAKES } else { transfers };
        while transfers > 0 && queues.transfers.give_next(self.transferred() + 1) {
            transfers -= 1;
            self.transferred.fetch_add(1, Ordering::Relaxed);
        }
        self.count_transfers(&queues);
        Given { first, others }
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

    /// Makes the number of transfers readable without the lock.
    fn count_transfers(&self, queues: &Queues) {
        self.waiting_transfers.store(queues.transfers.waiting, Ordering::Relaxed);
    }

    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TransferQueue {
    fn push(&mut self, client: ClientNumber, last_step: u64, place: Arc<Place>) {
        self.arrivals += 1;
        self.waiting += 1;
        let of_client = self.last_steps.get(usize::from(client.0)).copied().unwrap_or_default();
        let places = self.clients.entry((of_client, client.0)).or_default();
        places.insert((last_step, self.arrivals), place);
    }

    /// Gives the step with this number to the next connection; returns false if none waits.
    fn give_next(&mut self, step: u64) -> bool {
        while let Some(((of_client, client), mut places)) = self.clients.pop_first() {
            let next = places.pop_first();
            let given = next.is_some_and(|(_, place)| place.give());
            self.waiting -= 1;
            if given {
                self.last_steps.resize(CLIENTS, 0);
                self.last_steps[usize::from(client)] = step;
            }
            if !places.is_empty() {
                self.clients.insert((if given { step } else { of_client }, client), places);
            }
            if given {
                return true;
            }
        }
        false
    }
}

impl Queues {
    fn has_handshakes(&self) -> bool {
        !self.first.is_empty() || !self.others.is_empty()
    }
}

/// Gives steps to up to `most` places whose handshakes were not dropped; returns since when the last of them has
/// waited, and their number.
fn give_to(queue: &mut VecDeque<Waiting>, most: usize) -> (Option<Duration>, usize) {
    let (mut last, mut count) = (None, 0);
    while count < most
        && let Some(Waiting { place, since }) = queue.pop_front()
    {
        if place.give() {
            last = Some(since);
            count += 1;
        }
    }
    (last, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    fn places(count: usize) -> Vec<Arc<Place>> {
        (0..count).map(|_| Arc::default()).collect()
    }

    fn with_step(places: &[Arc<Place>]) -> usize {
        places.iter().filter(|place| place.take_step()).count()
    }

    #[test]
    fn steps_are_taken_in_order_some_at_a_time() {
        let (steps, places) = (StepQueue::default(), places(20));
        let wait = |place, time| steps.wait(place, Precedence::Other, Waker::noop(), at(time));
        for (time, place) in places.iter().enumerate() {
            wait(place, time as u64);
        }
        // A task that is woken for another reason neither loses its place nor gets another.
        wait(&places[0], 50);
        for (last, from, to) in [(7, 0, 8), (15, 8, 16), (19, 16, 20)] {
            assert_eq!(steps.give(1), Given { first: None, others: Some(at(last)) });
            assert_eq!((with_step(&places[from..to]), with_step(&places)), (to - from, 0));
        }
        assert_eq!((steps.give(1), steps.has_handshakes()), (Given::default(), false));
        wait(&places[0], 60);
        assert_eq!((steps.give(1).others, with_step(&places)), (Some(at(60)), 1));
    }

    #[test]
    fn precedence_leaves_a_step_to_the_others() {
        let (steps, first, others) = (StepQueue::default(), places(10), places(10));
        for (one, other) in first.iter().zip(&others) {
            steps.wait(other, Precedence::Other, Waker::noop(), at(1));
            steps.wait(one, Precedence::First, Waker::noop(), at(2));
        }
        assert_eq!(steps.give(1), Given { first: Some(at(2)), others: Some(at(1)) });
        assert_eq!((with_step(&first), with_step(&others)), (8, 1));
        steps.give(1);
        assert_eq!((with_step(&first), with_step(&others)), (2, 6));
    }

    #[test]
    fn a_dropped_handshake_takes_no_step() {
        let steps = StepQueue::default();
        for _ in 0..100 {
            steps.wait(&Arc::default(), Precedence::Other, Waker::noop(), at(0));
            steps.wait_to_transfer(&Arc::default(), ClientNumber(0), 0, Waker::noop());
        }
        let places = places(2);
        steps.wait(&places[0], Precedence::Other, Waker::noop(), at(1));
        steps.wait_to_transfer(&places[1], ClientNumber(0), 1, Waker::noop());
        assert_eq!((steps.give(1).others, with_step(&places)), (Some(at(1)), 2));
    }

    #[test]
    fn the_transfer_whose_last_step_was_the_longest_ago_is_next() {
        let (steps, places) = (StepQueue::default(), places(3));
        for (place, last_step) in places.iter().zip([7, 3, 5]) {
            steps.wait_to_transfer(place, ClientNumber(0), last_step, Waker::noop());
        }
        for (index, number) in [(1, 1), (2, 2), (0, 3)] {
            steps.give(1);
            assert_eq!(
                (places[index].take_step(), with_step(&places), steps.transferred()),
                (true, 0, number)
            );
        }
    }

    #[test]
    fn a_client_with_many_connections_gets_no_more_steps_than_one_with_one() {
        let (steps, many, one) = (StepQueue::default(), places(32), places(1));
        let (crowd, lone) = (ClientNumber::of_hash(7), ClientNumber::of_hash(8));
        let mut taken = [0, 0];
        for place in &many {
            steps.wait_to_transfer(place, crowd, 0, Waker::noop());
        }
        for _ in 0..100 {
            // Every connection waits again as soon as it had its step.
            steps.wait_to_transfer(&one[0], lone, steps.transferred(), Waker::noop());
            steps.give(1);
            taken[1] += with_step(&one);
            for place in many.iter().filter(|place| place.take_step()) {
                taken[0] += 1;
                steps.wait_to_transfer(place, crowd, steps.transferred(), Waker::noop());
            }
            assert!(steps.waiting_transfers() >= many.len());
        }
        assert_eq!(taken, [50, 50]);
    }

    #[test]
    fn handshakes_do_not_take_most_of_the_steps() {
        let (steps, transfers, handshakes) = (StepQueue::default(), places(6), places(8));
        for place in &transfers {
            steps.wait_to_transfer(place, ClientNumber(0), 0, Waker::noop());
        }
        for place in &handshakes {
            steps.wait(place, Precedence::First, Waker::noop(), at(0));
        }
        steps.give(1);
        assert_eq!((with_step(&transfers), with_step(&handshakes)), (4, 8));
        steps.give(1);
        assert_eq!(with_step(&transfers), 1);
    }
}
