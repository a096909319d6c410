//! Eviction of connections that wait for their clients. Newcomers evict silent ones, idle ones and those within a
//! request's header when a limit of the listener is reached. When file descriptors are nearly exhausted, the event loop
//! accepts no connections, and closes silent and idle ones, oldest first, until descriptors are free again; when memory
//! is scarce, it closes them as well.

use crate::{
    admission::{Holder, Visit},
    connection::{Connection, release_buffers},
    memory::{self, Stage},
    process::file_limits::Descriptors,
    telemetry::metrics,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::AbortHandle;

/// Minimum idle time of a closed connection; a client that was served more recently is likely to send another
/// request.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// Minimum silence of a connection in TCP mode, or with a tunnel, that yields to a newcomer. Its protocol is unknown:
/// both sides may wait for long.
const LEAST_SILENT: Duration = Duration::from_secs(10);

/// Number of connections closed at a time.
const AT_A_TIME: usize = 16;

/// Interval between checks for free descriptors.
const AGAIN: Duration = Duration::from_millis(20);

/// Interval at which connections are closed while memory is scarce, and the allocator releases memory.
const RELIEF: Duration = Duration::from_millis(100);

/// Divisor of the part of all connections that is closed at a time while memory is scarce.
const PART: usize = 32;

/// Open connections of an event loop.
#[derive(Default)]
pub(crate) struct OpenConnections(Mutex<Places>);

#[derive(Default)]
struct Places {
    next: u64,
    open: HashMap<u64, Arc<Occupant>>,
}

/// An open connection.
pub(crate) struct Occupant {
    accepted: Instant,
    task: OnceLock<AbortHandle>,
    evicted: AtomicBool,
    /// The handshake, once the filter chain is known.
    handshake: OnceLock<Arc<Visit>>,
    served: OnceLock<Served>,
}

/// Protocol of a connection.
enum Served {
    Http(Arc<Connection>),
    /// Forwarded bytes.
    Tcp(Arc<Connection>),
}

/// Guard that registers a connection as open.
pub(crate) struct OccupiedPlace {
    all: Arc<OpenConnections>,
    number: u64,
    pub(super) occupant: Arc<Occupant>,
}

impl OpenConnections {
    /// Registers a connection.
    pub(super) fn enter(self: &Arc<Self>) -> OccupiedPlace {
        let occupant = Arc::new(Occupant::new());
        let mut places = self.places();
        let number = places.next;
        places.next += 1;
        places.open.insert(number, Arc::clone(&occupant));
        OccupiedPlace { all: Arc::clone(self), number, occupant }
    }

    /// Closes the connections that have waited for their clients longest; returns their number. To be called on their event loop, so
    /// that they do not run meanwhile.
    fn close_oldest_idle(&self, now: Instant, most: usize) -> usize {
        let places = self.places();
        let mut idle: Vec<_> =
            places.open.values().filter_map(|open| Some((open.idle_since()?, open))).collect();
        idle.retain(|(since, _)| now.saturating_duration_since(*since) >= LEAST_IDLE);
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.truncate(most);
        idle.iter().for_each(|(_, open)| open.end());
        idle.len()
    }

    fn count(&self) -> usize {
        self.places().open.len()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Occupant {
    pub(super) fn new() -> Self {
        let (handshake, served) = (OnceLock::new(), OnceLock::new());
        let (task, evicted) = (OnceLock::new(), AtomicBool::new(false));
        Self { accepted: Instant::now(), task, evicted, handshake, served }
    }

    /// Sets the task that serves the connection.
    pub(super) fn is_served_by(&self, task: AbortHandle) {
        let task = self.task.get_or_init(|| task);
        if self.evicted.load(Ordering::SeqCst) {
            task.abort();
        }
    }

    /// Sets the handshake.
    pub(super) fn shakes_hands(&self, visit: &Arc<Visit>) {
        let _ = self.handshake.set(Arc::clone(visit));
    }

    /// Sets the HTTP state of the connection.
    pub(super) fn speaks_http(&self, connection: &Arc<Connection>) {
        let _ = self.served.set(Served::Http(Arc::clone(connection)));
    }

    /// Records that the connection is forwarded as bytes.
    pub(super) fn speaks_tcp(&self, connection: &Arc<Connection>) {
        let _ = self.served.set(Served::Tcp(Arc::clone(connection)));
    }

    /// Returns since when the connection waits for its client, but neither within a request's header, nor between
    /// forwarded bytes, which the client would miss.
    fn idle_since(&self) -> Option<Instant> {
        let in_header = match self.served.get() {
            Some(Served::Http(connection)) => connection.clock.header_due().is_some(),
            _ => false,
        };
        self.waits_since().filter(|_| !in_header && self.forwarded_at().is_none())
    }

    /// Returns since when the connection waits for its client, or, once bytes were forwarded, for either side.
    fn waits_since(&self) -> Option<Instant> {
        match self.served.get() {
            Some(Served::Http(connection)) => self.forwarded_at().or_else(|| connection.clock.waits_since()),
            Some(Served::Tcp(connection)) => self.forwarded_at().or_else(|| connection.clock.idle_since()),
            None if self.handshake.get().is_some_and(|visit| visit.is_computing()) => None,
            None => Some(self.accepted),
        }
    }

    /// Returns the time of waiting from which it yields: silent newcomers yield at once, served clients after a while.
    fn least_wait(&self) -> Duration {
        match self.served.get() {
            None => Duration::ZERO,
            Some(_) if self.forwarded_at().is_some() => LEAST_SILENT,
            Some(_) => LEAST_IDLE,
        }
    }

    /// Returns when bytes were last forwarded, if any were.
    fn forwarded_at(&self) -> Option<Instant> {
        let (Served::Http(connection) | Served::Tcp(connection)) = self.served.get()?;
        connection.clock.forwarded_at()
    }

    fn end(&self) {
        self.evicted.store(true, Ordering::SeqCst);
        self.task.get().into_iter().for_each(AbortHandle::abort);
    }
}

impl Holder for Occupant {
    fn yields(&self, now: Instant) -> bool {
        self.waits_since().is_some_and(|since| now.saturating_duration_since(since) >= self.least_wait())
    }

    fn evict(&self) {
        match self.served.get() {
            Some(_) => metrics::idle_connections_closed(1),
            None => metrics::handshake_failed("evicted"),
        }
        self.end();
    }
}

impl Drop for OccupiedPlace {
    fn drop(&mut self) {
        self.all.places().open.remove(&self.number);
    }
}

/// Returns once file descriptors are free for clients again.
pub(super) async fn make_room(open: &OpenConnections, descriptors: &Descriptors) {
    metrics::accepting_paused();
    loop {
        let closed = open.close_oldest_idle(Instant::now(), AT_A_TIME);
        metrics::idle_connections_closed(closed);
        if let Some(omitted) = descriptors.warning.is_due() {
            tracing::warn!(
                closed,
                omitted,
                "file descriptors nearly exhausted: accepting no connections, closing idle ones"
            );
        }
        tokio::time::sleep(AGAIN).await;
        if descriptors.are_free() {
            return;
        }
    }
}

/// Closes idle connections of this event loop and releases its free memory, whenever memory is scarce.
pub(crate) async fn relieve_memory(open: Arc<OpenConnections>) {
    loop {
        memory::until(|stage| stage >= Stage::Scarce).await;
        let closed = open.close_oldest_idle(Instant::now(), AT_A_TIME.max(open.count() / PART));
        metrics::idle_connections_closed(closed);
        // Connections that were closed end in the meantime.
        tokio::time::sleep(RELIEF).await;
        release_buffers();
        memory::release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quadrille_config::model::Timeouts;

    #[tokio::test(flavor = "current_thread")]
    async fn the_oldest_idle_connections_are_closed_and_no_others() {
        let all = Arc::new(OpenConnections::default());
        let address = ([127, 0, 0, 1], 1).into();
        let open = |_| {
            let occupied = all.enter();
            let connection = Arc::new(Connection::plain(address, address, &Timeouts::default()));
            occupied.occupant.speaks_http(&connection);
            let task = tokio::spawn(std::future::pending::<()>());
            occupied.occupant.is_served_by(task.abort_handle());
            (occupied, connection, task)
        };
        let connections: Vec<_> = (0..AT_A_TIME + 4).map(open).collect();
        connections[0].1.clock.begin_request();
        let bytes = all.enter();
        let forwarded = Arc::new(Connection::plain(address, address, &Timeouts::default()));
        forwarded.clock.forward(Instant::now());
        bytes.occupant.speaks_tcp(&forwarded);
        assert_eq!(all.close_oldest_idle(Instant::now(), AT_A_TIME), 0, "all were served recently");
        let later = Instant::now() + 2 * LEAST_IDLE;
        assert_eq!(all.close_oldest_idle(later, AT_A_TIME), AT_A_TIME);
        tokio::task::yield_now().await;
        let is_closed = || connections.iter().map(|(_, _, task)| task.is_finished()).collect::<Vec<_>>();
        assert_eq!(is_closed().iter().filter(|closed| **closed).count(), AT_A_TIME);
        assert!(!is_closed()[0], "a request is under way");
        drop((connections, bytes));
        assert!(all.places().open.is_empty());
    }

    #[test]
    fn forwarded_connections_yield_once_they_are_silent() {
        let address = ([127, 0, 0, 1], 1).into();
        let occupant = Occupant::new();
        let connection = Arc::new(Connection::plain(address, address, &Timeouts::default()));
        occupant.speaks_tcp(&connection);
        let later = Instant::now() + 2 * LEAST_IDLE;
        connection.clock.begin_request();
        assert!(!occupant.yields(later), "it waits for the server");
        connection.clock.end_request();
        assert!(occupant.yields(later) && occupant.idle_since().is_some(), "nothing was forwarded");
        connection.clock.forward(Instant::now());
        assert!(!occupant.yields(later) && occupant.yields(later + LEAST_SILENT));
        assert!(occupant.idle_since().is_none(), "only newcomers take its place");
        // A tunnel belongs to a request.
        let (occupant, connection) =
            (Occupant::new(), Arc::new(Connection::plain(address, address, &Timeouts::default())));
        occupant.speaks_http(&connection);
        connection.clock.begin_request();
        assert!(!occupant.yields(later + LEAST_SILENT), "a request");
        connection.clock.forward(Instant::now());
        assert!(!occupant.yields(later) && occupant.yields(later + LEAST_SILENT));
        assert!(occupant.idle_since().is_none());
    }

    #[tokio::test(flavor = "current_thread")]
    async fn clients_that_stop_within_a_header_or_before_it_are_evicted() {
        let address = ([127, 0, 0, 1], 1).into();
        let (silent, within) = (Occupant::new(), Occupant::new());
        let connection = Arc::new(Connection::plain(address, address, &Timeouts::default()));
        within.speaks_http(&connection);
        connection.clock.begin_header();
        assert!(silent.yields(Instant::now()) && !within.yields(Instant::now()));
        assert!(within.yields(Instant::now() + 2 * LEAST_IDLE));
        connection.clock.begin_request();
        assert!(!within.yields(Instant::now() + 2 * LEAST_IDLE));
        silent.evict();
        let task = tokio::spawn(std::future::pending::<()>());
        silent.is_served_by(task.abort_handle());
        assert!(task.await.is_err_and(|error| error.is_cancelled()), "evicted before its task was known");
    }
}
