//! State shared by submitters, completions and compute threads: the queues behind one lock.

use crate::{
    Key, KeyType, Load, Observer, Operation, OperationError, Overflow, Policy, Priority, Settings,
    installed::Installed,
    overflow::pace::Pace,
    policy::{Decision, Waiting},
    queue::Queues,
    ticket::Ticket,
};
use quadrille_handshake_timing::process_time;
use std::{
    collections::BTreeMap,
    num::NonZeroUsize,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

pub(crate) struct Shared {
    pub(crate) backend: Installed,
    pub(crate) settings: Settings,
    observer: Box<dyn Observer>,
    state: Mutex<State>,
    /// Idle compute threads wait here.
    pub(crate) work: Condvar,
    /// Idle threads of the overflow wait here.
    pub(crate) spilled: Condvar,
}

pub(crate) struct State {
    pub(crate) queues: Queues,
    pub(crate) load: Load,
    /// Compute threads that wait, or were notified and are not running yet.
    pub(crate) idle: usize,
    /// Wake-up times of the idle threads with a timeout.
    pub(crate) timed: Vec<Instant>,
    pub(crate) stopped: bool,
    /// Pace of each key type computed so far, if there is an overflow.
    pace: BTreeMap<KeyType, Pace>,
    /// Threads of the overflow that wait.
    pub(crate) overflow_idle: usize,
    /// Whether one of them was notified and is not running yet: until then, operations gather for it.
    pub(crate) overflow_woken: bool,
    /// Number of operations at the overflow, which may be queued again.
    pub(crate) overflowing: usize,
    /// Whether the overflow was retired.
    pub(crate) overflow_retired: bool,
}

impl State {
    fn new() -> Self {
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            queues: Queues::default(),
            load: Load::new(cpus, Instant::now(), process_time()),
            idle: 0,
            timed: Vec::new(),
            stopped: false,
            pace: BTreeMap::new(),
            overflow_idle: 0,
            overflow_woken: false,
            overflowing: 0,
            overflow_retired: false,
        }
    }

    pub(crate) fn pace(&self, key_type: KeyType) -> Pace {
        self.pace.get(&key_type).copied().unwrap_or_default()
    }

    pub(crate) fn pace_mut(&mut self, key_type: KeyType) -> &mut Pace {
        self.pace.entry(key_type).or_default()
    }
}

impl Shared {
    pub(crate) fn new(settings: Settings, backend: Installed, observer: Box<dyn Observer>) -> Self {
        let (work, spilled) = (Condvar::new(), Condvar::new());
        Self { backend, settings, observer, state: Mutex::new(State::new()), work, spilled }
    }

    /// Queues an operation that its key supports.
    pub(crate) fn push(
        &self,
        key: &Key,
        operation: Operation,
        priority: Priority,
    ) -> Result<Arc<Ticket>, OperationError> {
        let key_type = key.key_type();
        let ticket = Arc::new(Ticket::new(key.clone(), operation, Instant::now(), priority));
        let mut state = self.state();
        if state.queues.live() >= self.settings.capacity.get() {
            drop(state);
            self.tell(|observer| observer.shed(key_type));
            return Err(OperationError::QueueFull);
        }
        state.queues.push(Arc::clone(&ticket), || self.backend.batching(key_type));
        drop(state);
        Ok(ticket)
    }

    /// Withdraws a queued operation.
    pub(crate) fn withdraw(&self, ticket: &Ticket) {
        let before = self.state().queues.withdraw(ticket);
        if before.is_waiting() {
            self.tell(|observer| observer.withdrawn(ticket.key.key_type()));
        }
    }

    /// Withdraws an operation that is not in a queue.
    pub(crate) fn withdraw_deferred(&self, ticket: &Ticket) {
        if ticket.withdraw().is_waiting() {
            self.tell(|observer| observer.withdrawn(ticket.key.key_type()));
        }
    }

    /// Decides what a free compute thread does. An engine that stops does not wait for batches to fill.
    pub(crate) fn decide(&self, state: &State, now: Instant) -> Decision {
        let mut policy = self.settings.policy;
        let free = NonZeroUsize::MIN.saturating_add(state.idle);
        let waiting = state.queues.waiting(now, policy);
        if state.stopped {
            policy = Policy { poll_delay: Duration::ZERO, latency_budget: Duration::ZERO, ..policy };
            return policy.decide(now, waiting.map(Waiting::at_once), free, state.load.scarcity());
        }
        let mut held: Option<Instant> = None;
        let ours = waiting.filter(|queue| match self.held_until(state, queue) {
            Some(until) if until > now => {
                held = Some(held.map_or(until, |first| first.min(until)));
                false
            }
            _ => true,
        });
        let decision = policy.decide(now, ours, free, state.load.scarcity());
        match (decision, held) {
            (Decision::Sleep, Some(until)) => Decision::WaitUntil(until),
            (Decision::WaitUntil(due), Some(until)) => Decision::WaitUntil(due.min(until)),
            (decision, _) => decision,
        }
    }

    /// Returns the time until which compute threads leave a queue to the overflow, because CPU is scarce. Operations
    /// that it has returned are not left to it again.
    fn held_until(&self, state: &State, queue: &Waiting) -> Option<Instant> {
        let overflow = self.backend.overflow.as_ref()?;
        let capacity = overflow.capacity(queue.key_type);
        if state.overflow_retired || state.queues.begins_with_returned(queue.key_type) {
            return None;
        }
        let hold = state.pace(queue.key_type).hold(capacity, state.load.scarcity())?;
        Some(queue.oldest + hold)
    }

    /// Wakes a compute thread if operations wait and one is free; it wakes the next one if operations remain. A
    /// thread is not woken for a future deadline if another wakes up in time.
    pub(crate) fn flush(&self) {
        self.wake_threads(&mut self.state());
    }

    /// Wakes threads for the operations that wait.
    pub(crate) fn wake_threads(&self, state: &mut State) {
        let comes_up = |due: Instant| state.timed.iter().any(|time| *time <= due);
        let not_yet = || {
            !state.timed.is_empty()
                && matches!(self.decide(state, Instant::now()), Decision::WaitUntil(due) if comes_up(due))
        };
        if state.idle > 0 && state.queues.live() > 0 && !not_yet() {
            self.work.notify_one();
        }
        if let Some(overflow) = &self.backend.overflow {
            self.wake_overflow(state, &**overflow);
        }
    }

    /// Wakes a thread of the overflow if there are operations for it.
    pub(crate) fn wake_overflow(&self, state: &mut State, overflow: &dyn Overflow) {
        if state.overflow_idle > 0 && !state.overflow_woken && self.spills(state, overflow).is_some() {
            state.overflow_woken = true;
            self.spilled.notify_one();
        }
    }

    /// Returns a key type with operations that the overflow would finish sooner, and how many.
    pub(crate) fn spills(&self, state: &State, overflow: &dyn Overflow) -> Option<(KeyType, usize)> {
        state.queues.waiting(Instant::now(), self.settings.policy).find_map(|queue| {
            let capacity = overflow.capacity(queue.key_type);
            let count = state.pace(queue.key_type).share(queue.count, capacity, state.load.scarcity());
            (count > 0).then_some((queue.key_type, count))
        })
    }

    /// Stops the engine: waiting operations are computed at once, and then the compute threads end.
    pub(crate) fn stop(&self) {
        self.state().stopped = true;
        self.work.notify_all();
        self.spilled.notify_all();
    }

    /// Notifies the observer, without locks: observers are foreign code, and a panic in one must cost neither a
    /// compute thread nor, through a callback of BoringSSL's, the process.
    pub(crate) fn tell(&self, what: impl FnOnce(&dyn Observer)) {
        let _ = catch_unwind(AssertUnwindSafe(|| what(&*self.observer)));
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
