//! One event loop's share of a client: its operations behind an uncontended lock, a task for each server's
//! connection, and a timer task.

use super::{
    dispatch::{Assignment, Bytes, Dispatch, Failure},
    job::Job,
    metrics,
    shared::Shared,
};
use crate::session::{ClientSession, Completion};
use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Instant,
};

pub(super) struct LocalPool {
    pub(super) shared: Arc<Shared>,
    state: Mutex<State>,
    closed: AtomicBool,
    /// Number of tasks that drive this pool. They end with their runtime.
    tasks: AtomicUsize,
}

struct State {
    dispatch: Dispatch<Job>,
    /// Wakers of the connections' tasks, by server.
    connections: Vec<Option<Waker>>,
    /// Waker of the timer task, and its next wake-up time.
    clock: Option<Waker>,
    alarm: Option<Instant>,
}

/// Held by each task; counts the tasks.
pub(super) struct Task(Arc<LocalPool>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.tasks.fetch_sub(1, Ordering::Relaxed);
    }
}

impl LocalPool {
    /// Starts the timer task on this thread's runtime; the caller starts the connections.
    pub(super) fn start(shared: &Arc<Shared>) -> Arc<Self> {
        let count = shared.settings.servers.len();
        let dispatch = Dispatch::new(count, shared.settings.failover, shared.settings.capacity);
        let state = State { dispatch, connections: vec![None; count], clock: None, alarm: None };
        let pool = Arc::new(Self {
            shared: Arc::clone(shared),
            state: Mutex::new(state),
            closed: AtomicBool::new(false),
            tasks: AtomicUsize::new(0),
        });
        tokio::spawn(pool.task().watch_clock());
        pool
    }

    /// Returns whether its runtime still exists.
    pub(super) fn is_alive(&self) -> bool {
        self.tasks.load(Ordering::Relaxed) > 0
    }

    pub(super) fn submit(&self, job: Arc<Job>, impatient: bool) -> Result<u32, Failure> {
        if self.closed.load(Ordering::Relaxed) {
            return Err(Failure::Closed);
        }
        self.with_dispatch(|dispatch| dispatch.submit(Instant::now(), job, impatient))
    }

    pub(super) fn poll(&self, id: u32, waker: &Waker) -> Poll<Result<Bytes, Failure>> {
        self.state().dispatch.poll(id, waker)
    }

    pub(super) fn withdraw(&self, id: u32) {
        self.with_dispatch(|dispatch| dispatch.withdraw(id));
    }

    pub(super) fn up(&self, server: usize) {
        self.with_dispatch(|dispatch| dispatch.up(Instant::now(), server));
    }

    pub(super) fn lost(&self, server: usize) {
        wake(self.with_dispatch(|dispatch| dispatch.lost(Instant::now(), server)));
    }

    pub(super) fn heard(&self, server: usize) {
        self.state().dispatch.heard(Instant::now(), server);
    }

    pub(super) fn completed(&self, server: usize, completion: Completion<Assignment<Job>>) {
        wake(self.with_dispatch(|dispatch| dispatch.completed(Instant::now(), server, completion)));
    }

    /// Submits this server's requests to its session; later requests wake this task.
    pub(super) fn fill(
        &self,
        server: usize,
        context: &Context<'_>,
        session: &mut ClientSession<Assignment<Job>>,
    ) {
        let mut state = self.state();
        let waker = &mut state.connections[server];
        if !waker.as_ref().is_some_and(|known| known.will_wake(context.waker())) {
            *waker = Some(context.waker().clone());
        }
        state.dispatch.fill(Instant::now(), server, session);
        let clock = state.clock_if_late();
        drop(state);
        wake(clock);
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        let mut state = self.state();
        let mut wakers = state.dispatch.close();
        wakers.extend(state.connections.iter_mut().filter_map(Option::take));
        wakers.extend(state.clock.take());
        drop(state);
        wake(wakers);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn task(self: &Arc<Self>) -> Task {
        self.tasks.fetch_add(1, Ordering::Relaxed);
        Task(Arc::clone(self))
    }

    /// Runs an action on the operations, and wakes the tasks that have work afterwards.
    fn with_dispatch<T>(&self, action: impl FnOnce(&mut Dispatch<Job>) -> T) -> T {
        let mut state = self.state();
        let result = action(&mut state.dispatch);
        let ready = state.dispatch.take_ready();
        let due = |index: &usize| ready >> index & 1 == 1;
        let indexes = (0..state.connections.len()).filter(due);
        let wakers: Vec<Waker> = indexes.filter_map(|index| state.connections[index].take()).collect();
        let clock = state.clock_if_late();
        drop(state);
        wake(wakers.into_iter().chain(clock));
        result
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the waker of the timer task, if its wake-up would be too late.
    fn clock_if_late(&mut self) -> Option<Waker> {
        let due = self.dispatch.due()?;
        if self.alarm.is_none_or(|alarm| due < alarm) { self.clock.take() } else { None }
    }
}

impl Task {
    pub(super) fn pool(&self) -> &Arc<LocalPool> {
        &self.0
    }

    /// Fails overdue operations and sends second requests, until the client closes.
    async fn watch_clock(self) {
        let pool = &self.0;
        while !pool.is_closed() {
            let due = {
                let mut state = pool.state();
                state.alarm = state.dispatch.due();
                state.alarm
            };
            pool.until(due).await;
            let now = Instant::now();
            let ticked = pool.with_dispatch(|dispatch| dispatch.tick(now));
            if ticked.hedged > 0 {
                metrics::hedged(ticked.hedged);
            }
            wake(ticked.wakers);
        }
    }
}

impl LocalPool {
    /// Waits until this time, or until an earlier timeout is set.
    async fn until(&self, due: Option<Instant>) {
        let mut sleep = pin!(due.map(|due| tokio::time::sleep_until(due.into())));
        let mut first = true;
        poll_fn(|context| {
            if !std::mem::take(&mut first) && self.state().clock.is_none() {
                return Poll::Ready(());
            }
            self.state().clock = Some(context.waker().clone());
            match sleep.as_mut().as_pin_mut() {
                Some(sleep) => std::future::Future::poll(sleep, context),
                None => Poll::Pending,
            }
        })
        .await;
    }
}

/// Called without locks: waking runs foreign code.
fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}
