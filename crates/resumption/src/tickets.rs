//! The ticket keys of one process: the interface for handshakes, and the task that keeps the keys current.

use crate::{
    Fleet,
    keys::{Ring, Schedule, Scheduled, TicketKey, UnixTime},
};
use arc_swap::ArcSwap;
use quadrille_unix_time::since_epoch;
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

/// The ticket keys of one process.
#[derive(Debug)]
pub struct Tickets {
    ring: ArcSwap<Ring>,
    schedule: Schedule,
    source: Source,
    /// Notified when a ticket names a key that is not in the ring.
    unknown: Arc<Notify>,
}

#[derive(Debug)]
enum Source {
    Fixed,
    Local,
    Fleet(Fleet),
}

/// Time that startup waits for the fleet before it continues with its own key.
const JOIN: Duration = Duration::from_millis(700);
/// Minimum time between two reads of the published ring, regardless of the tickets that clients send.
const LEAST: Duration = Duration::from_millis(100);

impl Tickets {
    /// Creates a set of externally managed keys: the first encrypts, the others decrypt. `None` without any.
    pub fn fixed(keys: Vec<TicketKey>) -> Option<Arc<Self>> {
        let schedule = Schedule { rotation: Duration::MAX };
        Ring::fixed(keys).map(|ring| Self::new(ring, schedule, Source::Fixed))
    }

    /// Creates random keys known only to this process, rotated while [`run`](Self::run) runs.
    pub fn local(schedule: Schedule) -> Arc<Self> {
        let now = since_epoch();
        Self::new(Ring::provisional().begun(now).advanced(now, schedule), schedule, Source::Local)
    }

    /// Creates the fleet's keys, available once [`join`](Self::join) or [`run`](Self::run) has reached the fleet.
    /// Until then this process uses a key of its own.
    pub fn fleet(fleet: Fleet, schedule: Schedule) -> Arc<Self> {
        Self::new(Ring::provisional(), schedule, Source::Fleet(fleet))
    }

    /// Fetches the fleet's keys before the first handshake. Gives up after a short time: a gateway starts without its
    /// fleet.
    pub async fn join(&self) {
        let Source::Fleet(fleet) = &self.source else { return };
        match timeout(JOIN, fleet.agree(None, since_epoch(), self.schedule)).await {
            Ok(Ok(ring)) => {
                tracing::info!(%fleet, keys = ring.keys().len(), "joined the fleet's ticket keys");
                self.ring.store(Arc::new(ring));
            }
            failed => {
                let error = failed.map_or_else(|_| "no response".to_owned(), |joined| why(&joined));
                tracing::warn!(%fleet, error, "no ticket keys from the fleet yet; tickets are this gateway's own");
            }
        }
    }

    fn new(ring: Ring, schedule: Schedule, source: Source) -> Arc<Self> {
        Arc::new(Self { ring: ArcSwap::from_pointee(ring), schedule, source, unknown: Arc::default() })
    }

    /// Returns the key for a new ticket.
    pub fn encrypting(&self, now: UnixTime) -> Arc<TicketKey> {
        Arc::clone(&self.ring.load().encrypting(now).key)
    }

    /// Returns the key of a ticket, if it is still accepted. In a fleet, an unknown name triggers a read of the
    /// published ring.
    pub fn find(&self, name: &[u8], now: UnixTime) -> Option<Arc<TicketKey>> {
        let found = self.ring.load().find(name, now, self.schedule).map(Arc::clone);
        if found.is_none() {
            self.unknown.notify_one();
        }
        found
    }

    /// Returns whether other processes have the keys too.
    pub fn is_shared(&self) -> bool {
        !matches!(self.source, Source::Local)
    }

    /// Returns the current ring.
    pub fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// Returns the age of the key that encrypts, and the time until the next one takes over; `None` for an unknown
    /// value.
    pub fn ages(&self, now: UnixTime) -> (Option<Duration>, Option<Duration>) {
        let ring = self.ring.load();
        let known = |scheduled: &&Scheduled| !scheduled.from.is_zero();
        let age = Some(ring.encrypting(now)).filter(known).map(|current| now.saturating_sub(current.from));
        (age, ring.next(now).map(|next| next.from.saturating_sub(now)))
    }

    /// Keeps the keys current until they are dropped. Spawn it as a task.
    pub async fn run(this: Weak<Self>) {
        let mut failing = false;
        loop {
            let Some(tickets) = this.upgrade() else { return };
            let pause = tickets.schedule.poll();
            match &tickets.source {
                Source::Fixed => return,
                Source::Local => {
                    drop(tickets);
                    sleep(pause).await;
                    if let Some(tickets) = this.upgrade() {
                        tickets.advance();
                    }
                }
                Source::Fleet(fleet) => {
                    let own = tickets.ring();
                    match fleet.agree(Some(&own), since_epoch(), tickets.schedule).await {
                        Ok(ring) => {
                            if std::mem::take(&mut failing) {
                                tracing::info!(%fleet, "the fleet's ticket keys are in use again");
                            }
                            tickets.ring.store(Arc::new(ring));
                        }
                        Err(error) if !failing => {
                            failing = true;
                            tracing::warn!(%error, %fleet, "the fleet's ticket keys cannot be renewed; the known ones stay in use");
                        }
                        Err(_) => {}
                    }
                    // An unknown key ends the pause: this gateway must have been suspended.
                    let unknown = Arc::clone(&tickets.unknown);
                    drop(tickets);
                    sleep(LEAST.min(pause)).await;
                    drop(timeout(pause, unknown.notified()).await);
                }
            }
        }
    }

    fn advance(&self) {
        let ring = self.ring.load().advanced(since_epoch(), self.schedule);
        if !ring.same(&self.ring.load()) {
            self.ring.store(Arc::new(ring));
        }
    }
}

fn why(joined: &Result<Ring, crate::FleetError>) -> String {
    joined.as_ref().err().map(ToString::to_string).unwrap_or_default()
}
