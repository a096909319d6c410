//! The ticket keys of one process: what handshakes ask, and the task that keeps them right.

use crate::{
    Fleet,
    keys::{Ring, Schedule, Scheduled, TicketKey, UnixTime, unix_now},
};
use arc_swap::ArcSwap;
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
    /// Somebody has seen a key that is not in the ring.
    unknown: Arc<Notify>,
}

#[derive(Debug)]
enum Source {
    Fixed,
    Local,
    Fleet(Fleet),
}

/// How long a start waits for the fleet before it goes on alone.
const JOIN: Duration = Duration::from_millis(700);
/// Between two looks at the published ring, whatever strangers send.
const LEAST: Duration = Duration::from_millis(100);

impl Tickets {
    /// Keys that somebody else looks after: the first encrypts, the others decrypt. `None` without any.
    pub fn fixed(keys: Vec<TicketKey>) -> Option<Arc<Self>> {
        let schedule = Schedule { rotation: Duration::MAX };
        Ring::fixed(keys).map(|ring| Self::new(ring, schedule, Source::Fixed))
    }

    /// Random keys that nobody else knows, rotated while [`run`](Self::run) does.
    pub fn local(schedule: Schedule) -> Arc<Self> {
        let now = unix_now();
        Self::new(Ring::provisional().begun(now).advanced(now, schedule), schedule, Source::Local)
    }

    /// The fleet's keys, once [`join`](Self::join) or [`run`](Self::run) has reached the fleet. Until then this process
    /// has a key of its own.
    pub fn fleet(fleet: Fleet, schedule: Schedule) -> Arc<Self> {
        Self::new(Ring::provisional(), schedule, Source::Fleet(fleet))
    }

    /// Gets the fleet's keys before the first handshake, and gives up in a moment: a gateway starts without its fleet.
    pub async fn join(&self) {
        let Source::Fleet(fleet) = &self.source else { return };
        match timeout(JOIN, fleet.agree(None, unix_now(), self.schedule)).await {
            Ok(Ok(ring)) => {
                tracing::info!(%fleet, keys = ring.keys().len(), "joined the fleet's ticket keys");
                self.ring.store(Arc::new(ring));
            }
            failed => {
                let error = failed.map_or_else(|_| "no answer".to_owned(), |joined| why(&joined));
                tracing::warn!(%fleet, error, "no ticket keys from the fleet yet; tickets are this gateway's own");
            }
        }
    }

    fn new(ring: Ring, schedule: Schedule, source: Source) -> Arc<Self> {
        Arc::new(Self { ring: ArcSwap::from_pointee(ring), schedule, source, unknown: Arc::default() })
    }

    /// The key for a new ticket.
    pub fn encrypting(&self, now: UnixTime) -> Arc<TicketKey> {
        Arc::clone(&self.ring.load().encrypting(now).key)
    }

    /// The key of a ticket, if it is still accepted. In a fleet, an unknown name makes this process look for news.
    pub fn find(&self, name: &[u8], now: UnixTime) -> Option<Arc<TicketKey>> {
        let found = self.ring.load().find(name, now, self.schedule).map(Arc::clone);
        if found.is_none() {
            self.unknown.notify_one();
        }
        found
    }

    /// Whether others have the keys too.
    pub fn is_shared(&self) -> bool {
        !matches!(self.source, Source::Local)
    }

    /// The keys as they are.
    pub fn ring(&self) -> Arc<Ring> {
        self.ring.load_full()
    }

    /// How long the key that encrypts has been doing so, and when the next one takes over; `None` for what is not
    /// known.
    pub fn ages(&self, now: UnixTime) -> (Option<Duration>, Option<Duration>) {
        let ring = self.ring.load();
        let known = |scheduled: &&Scheduled| !scheduled.from.is_zero();
        let age = Some(ring.encrypting(now)).filter(known).map(|current| now.saturating_sub(current.from));
        (age, ring.next(now).map(|next| next.from.saturating_sub(now)))
    }

    /// Keeps the keys right until they are dropped. Spawn it.
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
                    match fleet.agree(Some(&own), unix_now(), tickets.schedule).await {
                        Ok(ring) => {
                            if std::mem::take(&mut failing) {
                                tracing::info!(%fleet, "the fleet's ticket keys are in use again");
                            }
                            tickets.ring.store(Arc::new(ring));
                        }
                        Err(error) if !failing => {
                            failing = true;
                            tracing::warn!(%error, %fleet, "the fleet's ticket keys cannot be renewed; the known ones go on");
                        }
                        Err(_) => {}
                    }
                    // A key that this gateway has not heard of ends the pause: it must have slept.
                    let unknown = Arc::clone(&tickets.unknown);
                    drop(tickets);
                    sleep(LEAST.min(pause)).await;
                    drop(timeout(pause, unknown.notified()).await);
                }
            }
        }
    }

    fn advance(&self) {
        let ring = self.ring.load().advanced(unix_now(), self.schedule);
        if !ring.same(&self.ring.load()) {
            self.ring.store(Arc::new(ring));
        }
    }
}

fn why(joined: &Result<Ring, crate::FleetError>) -> String {
    joined.as_ref().err().map(ToString::to_string).unwrap_or_default()
}
