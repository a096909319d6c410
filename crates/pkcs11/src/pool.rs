//! Threads that may hang. Each operation has a deadline, after which it fails although its thread still waits for the
//! token. If nothing has completed since a thread began to hang, further operations fail at once, except for one a second
//! that tries whether other threads succeed.

use std::{
    collections::{HashMap, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

/// Operation of a pool whose threads have a `C` each.
pub(crate) trait Work<C>: Send + Sync {
    /// Performs the operation on one of the threads, unless it is over.
    fn run(&self, context: &mut C) -> Ran;

    /// Fails the operation, which may be in progress.
    fn fail(&self, cause: Cause);

    /// Returns whether it has completed, failed, or was withdrawn.
    fn is_over(&self) -> bool;
}

/// Whether an operation was performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ran {
    Done,
    /// There is no room for this thread: another one performs the operation.
    NoRoom,
}

/// Reason for which the pool fails an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Deadline,
    NoRoom,
    Panic,
}

/// Reason for which an operation was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Full,
    Hanging,
}

/// Pool of threads, which end after it is dropped. Threads that hang are left behind.
pub(crate) struct Pool<C: 'static>(Arc<Inner<C>>);

type Make<C> = Box<dyn Fn() -> C + Send + Sync>;
type Observe = Box<dyn Fn(bool) + Send + Sync>;

struct Inner<C> {
    name: String,
    /// Largest number of threads.
    most: Arc<AtomicUsize>,
    make: Make<C>,
    /// Receives true when the threads begin to hang, and false when they respond again.
    observe: Observe,
    state: Mutex<State<C>>,
    work: Condvar,
    clock: Condvar,
}

struct Entry<C> {
    work: Arc<dyn Work<C>>,
    timeout: Duration,
    deadline: Instant,
}

/// Entries are dropped without the lock: an operation may hold the last reference to the pool.
struct State<C> {
    queue: VecDeque<Arc<Entry<C>>>,
    /// Operations that may still exceed their deadline.
    open: Vec<Arc<Entry<C>>>,
    threads: HashMap<u64, Option<Busy>>,
    last_thread: u64,
    idle: usize,
    last_done: Instant,
    last_trial: Option<Instant>,
    hangs: bool,
    has_clock: bool,
    stopped: bool,
}

/// Operation of a thread.
#[derive(Clone, Copy)]
struct Busy {
    began: Instant,
    deadline: Instant,
}

/// Largest number of waiting operations.
const CAPACITY: usize = 1024;
/// Interval between trials of a pool that hangs.
const TRIAL: Duration = Duration::from_secs(1);

impl<C: 'static> Pool<C> {
    /// Creates a pool. Threads start when there are operations for them.
    pub(crate) fn new(name: String, most: Arc<AtomicUsize>, make: Make<C>, observe: Observe) -> Self {
        let state = State {
            queue: VecDeque::new(),
            open: Vec::new(),
            threads: HashMap::new(),
            last_thread: 0,
            idle: 0,
            last_done: Instant::now(),
            last_trial: None,
            hangs: false,
            has_clock: false,
            stopped: false,
        };
        let (work, clock) = (Condvar::new(), Condvar::new());
        Self(Arc::new(Inner { name, most, make, observe, state: Mutex::new(state), work, clock }))
    }

    /// Submits an operation, which fails unless it completes within this time.
    pub(crate) fn submit(&self, work: Arc<dyn Work<C>>, timeout: Duration) -> Result<(), Refused> {
        let (now, most) = (Instant::now(), self.0.most.load(Ordering::Relaxed));
        let mut state = self.0.state();
        if state.is_hanging(now) && !state.may_try(now, most) {
            return Err(Refused::Hanging);
        }
        if state.queue.len() >= CAPACITY {
            state.queue.retain(|entry| !entry.work.is_over());
        }
        if state.queue.len() >= CAPACITY {
            return Err(Refused::Full);
        }
        state.forget_over();
        let entry = Arc::new(Entry { work, timeout, deadline: now + timeout });
        state.queue.push_back(Arc::clone(&entry));
        state.open.push(entry);
        if state.queue.len() > state.idle && state.threads.len() < most.max(1) {
            self.0.start_thread(&mut state);
        }
        if !state.has_clock {
            state.has_clock = start(format!("{}-clock", self.0.name), &self.0, |inner| inner.watch_clock());
        }
        // Without a thread or a clock, the operation would never end.
        if state.threads.is_empty() || !state.has_clock {
            state.queue.pop_back();
            state.open.pop();
            return Err(Refused::Full);
        }
        drop(state);
        self.0.work.notify_one();
        self.0.clock.notify_one();
        Ok(())
    }
}

impl<C: 'static> Drop for Pool<C> {
    fn drop(&mut self) {
        self.0.state().stopped = true;
        self.0.work.notify_all();
        self.0.clock.notify_all();
    }
}

impl<C> State<C> {
    /// Returns whether a thread exceeds its deadline, and nothing has completed since it began.
    fn is_hanging(&self, now: Instant) -> bool {
        let stuck = |busy: &Busy| busy.deadline <= now && busy.began >= self.last_done;
        self.threads.values().flatten().any(stuck)
    }

    /// Returns whether this operation tries if the token responds: a free thread exists, and the last trial is over.
    fn may_try(&mut self, now: Instant, most: usize) -> bool {
        let is_free = self.idle > self.queue.len() || self.threads.len() < most;
        let may = is_free && self.last_trial.is_none_or(|last| now.saturating_duration_since(last) >= TRIAL);
        if may {
            self.last_trial = Some(now);
        }
        may
    }

    /// Drops operations that are over, when they outnumber the others. The caller holds a reference to the pool.
    fn forget_over(&mut self) {
        const FEW: usize = 64;
        if self.open.len() > 2 * (self.queue.len() + self.threads.len()) + FEW {
            self.open.retain(|entry| !entry.work.is_over());
        }
    }
}

impl<C: 'static> Inner<C> {
    fn start_thread(self: &Arc<Self>, state: &mut State<C>) {
        state.last_thread += 1;
        let id = state.last_thread;
        if start(self.name.clone(), self, move |inner| inner.work(id)) {
            state.threads.insert(id, None);
        }
    }

    fn work(&self, id: u64) {
        let mut context = (self.make)();
        while let Some(entry) = self.next(id) {
            let ran = catch_unwind(AssertUnwindSafe(|| entry.work.run(&mut context)));
            if ran.is_err() {
                entry.work.fail(Cause::Panic);
                context = (self.make)();
            }
            if self.finished(id, &entry, ran.is_ok_and(|ran| ran == Ran::NoRoom)) {
                return;
            }
        }
    }

    fn next(&self, id: u64) -> Option<Arc<Entry<C>>> {
        let mut state = self.state();
        loop {
            if state.stopped || !state.threads.contains_key(&id) {
                return None;
            }
            if let Some(entry) = state.queue.pop_front() {
                let now = Instant::now();
                state.threads.insert(id, Some(Busy { began: now, deadline: now + entry.timeout }));
                return Some(entry);
            }
            state.idle += 1;
            state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.idle -= 1;
        }
    }

    /// Records that the thread is free. Returns whether it must end, because the pool has no room for it.
    fn finished(&self, id: u64, entry: &Arc<Entry<C>>, no_room: bool) -> bool {
        let mut state = self.state();
        state.threads.insert(id, None);
        let ends = no_room && state.threads.len() > 1;
        if ends {
            state.threads.remove(&id);
            self.most.fetch_min(state.threads.len(), Ordering::Relaxed);
            state.queue.push_front(Arc::clone(entry));
        }
        state.last_done = Instant::now();
        let responds_again = std::mem::take(&mut state.hangs);
        drop(state);
        if ends {
            self.work.notify_one();
        } else if no_room {
            entry.work.fail(Cause::NoRoom);
        }
        if responds_again {
            (self.observe)(false);
        }
        ends
    }

    /// Fails operations at their deadlines.
    fn watch_clock(&self) {
        let mut state = self.state();
        loop {
            let now = Instant::now();
            let is_due = |entry: &Arc<Entry<C>>| entry.deadline <= now || entry.work.is_over();
            let (due, open): (Vec<_>, Vec<_>) = std::mem::take(&mut state.open).into_iter().partition(is_due);
            state.open = open;
            let begins_to_hang = !state.hangs && state.is_hanging(now);
            state.hangs |= begins_to_hang;
            if !due.is_empty() || begins_to_hang {
                drop(state);
                due.iter()
                    .filter(|entry| !entry.work.is_over())
                    .for_each(|entry| entry.work.fail(Cause::Deadline));
                drop(due);
                if begins_to_hang {
                    (self.observe)(true);
                }
                state = self.state();
                continue;
            }
            if state.stopped && state.open.is_empty() {
                return;
            }
            let busy = state.threads.values().flatten().map(|busy| busy.deadline).filter(|due| *due > now);
            let next = state.open.iter().map(|entry| entry.deadline).chain(busy).min();
            state = match next {
                Some(next) => {
                    let limit = next.saturating_duration_since(now);
                    self.clock.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.clock.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start<C: 'static>(
    name: String,
    inner: &Arc<Inner<C>>,
    run: impl FnOnce(&Arc<Inner<C>>) + Send + 'static,
) -> bool {
    let inner = Arc::clone(inner);
    std::thread::Builder::new().name(name).spawn(move || run(&inner)).is_ok()
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
