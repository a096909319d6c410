//! Eviction of idle connections when file descriptors are nearly exhausted: the event loop accepts no connections,
//! and closes its idle ones, oldest first, until descriptors are free again.

use crate::{connection::Connection, process::file_limits::Descriptors, telemetry::metrics};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};
use tokio::task::AbortHandle;

/// Minimum idle time of a closed connection; a client that was served more recently is likely to send another
/// request.
const LEAST_IDLE: Duration = Duration::from_secs(1);

/// Number of connections closed at a time.
const AT_A_TIME: usize = 16;

/// Interval between checks for free descriptors.
const AGAIN: Duration = Duration::from_millis(20);

/// Open connections of an event loop.
#[derive(Default)]
pub(crate) struct OpenConnections(Mutex<Places>);

#[derive(Default)]
struct Places {
    next: u64,
    open: HashMap<u64, Arc<Place>>,
}

/// An open connection.
#[derive(Default)]
pub(crate) struct Place {
    task: OnceLock<AbortHandle>,
    /// Set once the protocol is known to be HTTP. Other connections are not known to be idle.
    http: OnceLock<Arc<Connection>>,
}

/// Guard that registers a connection as open.
pub(crate) struct OccupiedPlace {
    all: Arc<OpenConnections>,
    number: u64,
    pub(super) place: Arc<Place>,
}

impl OpenConnections {
    /// Registers a connection.
    pub(super) fn enter(self: &Arc<Self>) -> OccupiedPlace {
        let place = Arc::new(Place::default());
        let mut places = self.places();
        let number = places.next;
        places.next += 1;
        places.open.insert(number, Arc::clone(&place));
        OccupiedPlace { all: Arc::clone(self), number, place }
    }

    /// Closes the connections that have been idle longest; returns their number. To be called on their event loop, so
    /// that they do not run meanwhile.
    fn close_oldest_idle(&self, now: Instant) -> usize {
        let places = self.places();
        let mut idle: Vec<_> =
            places.open.values().filter_map(|place| Some((place.idle_since()?, place))).collect();
        idle.retain(|(since, _)| now.saturating_duration_since(*since) >= LEAST_IDLE);
        idle.sort_unstable_by_key(|(since, _)| *since);
        idle.truncate(AT_A_TIME);
        idle.iter().filter_map(|(_, place)| place.task.get()).for_each(AbortHandle::abort);
        idle.len()
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Sets the task that serves the connection.
    pub(super) fn is_served_by(&self, task: AbortHandle) {
        let _ = self.task.set(task);
    }

    /// Sets the HTTP state of the connection.
    pub(super) fn speaks_http(&self, connection: &Arc<Connection>) {
        let _ = self.http.set(Arc::clone(connection));
    }

    /// Returns since when the connection is idle.
    fn idle_since(&self) -> Option<Instant> {
        let clock = &self.http.get()?.clock;
        clock.idle_since().filter(|_| clock.header_due().is_none())
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
        let closed = open.close_oldest_idle(Instant::now());
        metrics::idle_connections_closed(closed);
        if descriptors.warning.is_due() {
            tracing::warn!(
                closed,
                "file descriptors nearly exhausted: accepting no connections, closing idle ones"
            );
        }
        tokio::time::sleep(AGAIN).await;
        if descriptors.are_free() {
            return;
        }
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
            occupied.place.speaks_http(&connection);
            let task = tokio::spawn(std::future::pending::<()>());
            occupied.place.is_served_by(task.abort_handle());
            (occupied, connection, task)
        };
        let connections: Vec<_> = (0..AT_A_TIME + 4).map(open).collect();
        connections[0].1.clock.begin_request();
        connections[1].1.clock.begin_header();
        let unknown = all.enter();
        assert_eq!(all.close_oldest_idle(Instant::now()), 0, "all were served recently");
        assert_eq!(all.close_oldest_idle(Instant::now() + 2 * LEAST_IDLE), AT_A_TIME);
        tokio::task::yield_now().await;
        let closed: Vec<_> = connections.iter().map(|(_, _, task)| task.is_finished()).collect();
        assert_eq!(closed.iter().filter(|closed| **closed).count(), AT_A_TIME);
        assert_eq!(closed[..2], [false, false], "a request is under way, a header has begun");
        drop((connections, unknown));
        assert!(all.places().open.is_empty());
    }
}
