//! Admission control under overload. Pure: takes events with their times, and decides.
//!
//! A handshake is admitted as long as there is no standing queue (`congestion`) and it will complete in time. With a
//! standing queue, the limit on the queue's length depends on the handshake's rank: resumed sessions first, then
//! known clients, then unknown clients, then clients that have exceeded their share.

use super::{
    backlog::{Backlog, Pending},
    congestion::Congestion,
    recent_clients::RecentClients,
    shares::Shares,
};
use quadrille_engine::KeyType;
use std::time::Duration;

/// Queueing delay of private-key operations beyond which unknown clients are rejected. It bounds the delay of
/// admitted clients and is the time in which a burst may be worked off. Known clients bypass this queue.
pub(super) const KEY_TARGET: Duration = Duration::from_millis(250);
/// Number of queued operations that is not congestion, however slow they are: a few dozen clients of a key whose
/// operations take long, such as RSA with primes of different sizes, wait longer than [`KEY_TARGET`] for each other.
const FEW: u32 = 64;
/// Delay of unknown clients' steps on an event loop beyond which they are rejected. Known clients do not wait for
/// steps.
pub(super) const LOOP_TARGET: Duration = Duration::from_millis(50);
/// Delay of a step beyond which connections of unknown clients are closed on accept while there is a standing queue.
/// It is long enough to keep an event loop busy.
const TURN_TARGET: Duration = Duration::from_millis(10);
/// Multiple of a target for unknown clients: they were counted on accept, and are not rejected because of each other.
const WITHIN: f64 = 1.5;
/// Time for which a queue has to be above its target.
const INTERVAL: Duration = Duration::from_millis(250);

/// Multiple of a target for known clients: they wait only for each other, but on an event loop also for work other
/// than handshakes.
const KNOWN_ON_LOOP: f64 = 4.0;
/// Fraction of a target for clients over their share: they get the capacity that remains when others hardly wait.
const CLIENT_OVER_SHARE: f64 = 0.25;
const NAME_OVER_SHARE: f64 = 0.5;

/// Time between the start of a flood and its detection: the interval of a queue, and the time to reach its target.
/// Clients seen first within it do not count as known before the flood.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Number of consecutive rejections after which only one in [`HEARD_ONE_IN`] connections is looked at.
const REFUSED_UNHEARD: u8 = 8;
const HEARD_ONE_IN: u32 = 16;

/// Time for which a measurement of an event loop's delay is valid.
const LOOP_DELAY_HOLDS: Duration = Duration::from_millis(200);

/// CPU time of a full and a resumed handshake on an event loop before any measurement, in seconds.
const FIRST_GUESS: [f64; 2] = [150e-6, 80e-6];

const CLIENTS: usize = 32 * 1024;
const NAMES: usize = 4 * 1024;
const KNOWN: usize = 64 * 1024;

/// Admission controller of a process. Times are relative to an arbitrary epoch.
pub(super) struct Controller {
    clients: Shares,
    names: Shares,
    known: RecentClients,
    /// Last time without a standing queue.
    calm: Duration,
    backlog: Backlog,
    keys: Congestion,
    loops: Vec<LoopState>,
    /// CPU time of a full and a resumed handshake on its event loop, in seconds.
    cpu: [f64; 2],
    unheard: u32,
}

#[derive(Clone, Copy)]
struct LoopState {
    congestion: Congestion,
    /// Delay of ready tasks.
    front: Delay,
    /// Additional delay of unknown clients, whose steps come after all ready tasks.
    behind: Delay,
}

#[derive(Clone, Copy, Default)]
struct Delay {
    delay: Duration,
    measured: Duration,
}

/// A handshake whose ClientHello has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// The client's network.
    pub(super) client: u64,
    /// The certificate's name.
    pub(super) name: u64,
    pub(super) event_loop: usize,
    /// Time since the connection was accepted.
    pub(super) age: Duration,
    /// Time by which the handshake has to be complete, counted from the accept.
    pub(super) deadline: Duration,
    pub(super) work: Work,
}

/// Cost class of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// No private-key operation.
    Resumed,
    /// One private-key operation on the event loop's own thread, or on another machine.
    Full,
    /// One private-key operation that is queued for a compute thread.
    Queued(KeyType),
}

/// Scheduling of an admitted handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    /// Whether its private-key operation is queued ahead of normal ones.
    pub(super) urgent: bool,
    /// Whether it runs before unknown clients on its event loop.
    pub(super) first: bool,
}

/// Reason for rejecting a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The handshake would not complete in time.
    Deadline,
    /// There is a standing queue.
    Overload,
    /// There is a standing queue, and the client's network has exceeded its share.
    ClientShare,
    /// There is a standing queue, and the server name has exceeded its share.
    NameShare,
}

/// Decision on a connection before its handshake begins. It is `Open` while there is no standing queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    /// Accepts unknown clients only if they resume a session.
    ForSessions,
    /// Accepts unknown clients only if they resume a session or their private-key operation is not queued.
    ForSessionsAndKeysInPlace,
    /// Rejects a client with many consecutive rejections, except for occasional probes.
    Closed,
}

impl Controller {
    /// Creates a controller for the given numbers of event loops and compute threads.
    pub(super) fn new(event_loops: usize, compute_threads: usize) -> Self {
        let congestion = Congestion::new(LOOP_TARGET, INTERVAL);
        let idle = LoopState { congestion, front: Delay::default(), behind: Delay::default() };
        Self {
            clients: Shares::new(CLIENTS),
            names: Shares::new(NAMES),
            known: RecentClients::new(KNOWN),
            calm: Duration::ZERO,
            backlog: Backlog::new(compute_threads),
            keys: Congestion::new(KEY_TARGET, INTERVAL),
            loops: vec![idle; event_loops],
            cpu: FIRST_GUESS,
            unheard: 0,
        }
    }

    /// Decides on a handshake.
    pub(super) fn arrive(&mut self, arrival: &Arrival, now: Duration) -> Result<Admitted, Refusal> {
        let (client, name) = (self.clients.count(arrival.client, now), self.names.count(arrival.name, now));
        let known = self.knows(arrival.client, now);
        let (urgent_wait, whole_wait) = self.backlog.waits(now);
        let key_target = self.observe_keys(whole_wait, now);
        let is_queued = matches!(arrival.work, Work::Queued(_));
        // Known clients within their share bypass the rest of the queue.
        let urgent = known && !client.is_over;
        let key_wait = match (is_queued, urgent) {
            (false, _) => Duration::ZERO,
            (true, true) => urgent_wait,
            (true, false) => whole_wait,
        };
        let resumed = arrival.work == Work::Resumed && !client.is_over;
        let first = urgent || resumed;
        let loop_stands = self.loop_stands(arrival.event_loop, now);
        let whole_delay = self.loop_delay(arrival.event_loop, false, now);
        let loop_delay = self.loop_delay(arrival.event_loop, first, now);
        let keys_stand = is_queued && self.keys.is_on(now);
        let mut open = match (client.is_over, name.is_over) {
            (true, _) => CLIENT_OVER_SHARE,
            (false, true) => NAME_OVER_SHARE,
            (false, false) => 1.0,
        };
        if keys_stand || loop_stands {
            let share_of = |wait: Duration, target: Duration| wait.as_secs_f64() / target.as_secs_f64();
            let full = share_of(whole_wait, key_target).max(share_of(whole_delay, LOOP_TARGET));
            if !(CLIENT_OVER_SHARE..0.5).contains(&full) {
                self.clients.adjust(full >= 0.5, now);
                self.names.adjust(full >= 0.5, now);
            }
            let within = if known || client.is_over { 1.0 } else { WITHIN };
            let keys_full = keys_stand && key_wait > key_target.mul_f64(open * within);
            if urgent {
                open *= KNOWN_ON_LOOP;
            }
            let loop_full = loop_stands && !resumed && loop_delay > LOOP_TARGET.mul_f64(open);
            if keys_full || loop_full {
                let reason = match (client.is_over, name.is_over) {
                    (true, _) => Refusal::ClientShare,
                    (false, true) => Refusal::NameShare,
                    (false, false) => Refusal::Overload,
                };
                return Err(self.refuse(arrival, reason, now));
            }
        }
        if arrival.age + loop_delay + key_wait > arrival.deadline {
            return Err(self.refuse(arrival, Refusal::Deadline, now));
        }
        self.admit(arrival, known, now);
        Ok(Admitted { urgent, first })
    }

    /// Returns whether this client's handshakes run before those of unknown clients on their event loops.
    pub(super) fn goes_first(&mut self, client: u64, now: Duration) -> bool {
        self.knows(client, now) && !self.clients.count(client, now).is_over
    }

    /// Decides on a connection before any data of the client is read.
    pub(super) fn door(&mut self, client: u64, event_loop: usize, now: Duration) -> Door {
        let share = self.clients.count(client, now);
        let loop_delay = self.loop_delay(event_loop, false, now);
        let (loop_stands, keys_stand) = (self.loop_stands(event_loop, now), self.keys.is_on(now));
        if !loop_stands && !keys_stand {
            return Door::Open;
        }
        if share.is_over && share.rejections_in_a_row >= REFUSED_UNHEARD {
            self.press(event_loop, now);
            self.unheard = self.unheard.wrapping_add(1);
            return if self.unheard.is_multiple_of(HEARD_ONE_IN) { Door::Open } else { Door::Closed };
        }
        let behind = self.loops.get(event_loop).map_or(Duration::ZERO, |known| known.behind.at(now));
        let loop_full = loop_stands && loop_delay > LOOP_TARGET || behind > TURN_TARGET;
        let keys_full = keys_stand && self.backlog.waits(now).1 > self.keys.target;
        match !self.knows(client, now) {
            true if loop_full => Door::ForSessions,
            true if keys_full => Door::ForSessionsAndKeysInPlace,
            true => {
                self.backlog.expect(now);
                Door::Open
            }
            false => Door::Open,
        }
    }

    /// Records the rejection of a connection by [`Door`].
    pub(super) fn refuse_at_door(&mut self, client: u64, event_loop: usize, now: Duration) -> Refusal {
        self.clients.adjust(true, now);
        self.names.adjust(true, now);
        self.clients.count_rejection(client, now);
        self.press(event_loop, now);
        Refusal::Overload
    }

    /// Returns the queueing delay of a private-key operation submitted now.
    pub(super) fn key_wait(&self, urgent: bool) -> Duration {
        self.backlog.ahead_of(urgent)
    }

    /// Records a submitted private-key operation.
    pub(super) fn enter(&mut self, key_type: KeyType, urgent: bool, now: Duration) -> Pending {
        self.backlog.enter(key_type, urgent, now)
    }

    /// Records that an operation was computed or canceled.
    pub(super) fn leave(&mut self, pending: Pending, now: Duration) {
        self.backlog.leave(pending);
        let (_, wait) = self.backlog.waits(now);
        self.observe_keys(wait, now);
    }

    /// Records a computed batch of private-key operations.
    pub(super) fn computed(
        &mut self,
        key_type: KeyType,
        operations: usize,
        took: Duration,
        elsewhere: bool,
        now: Duration,
    ) {
        self.backlog.computed(key_type, operations, took, elsewhere, now);
    }

    /// Records a successful handshake. While there is a standing queue, no client becomes known: otherwise a flood
    /// from many networks would soon consist of known clients.
    pub(super) fn complete(&mut self, client: u64, now: Duration) {
        self.clients.reset_rejections(client, now);
        if self.knows(client, now) || !self.is_overloaded(now) {
            self.known.record(client, now);
        }
    }

    /// Records the measured CPU time of a handshake on its event loop.
    pub(super) fn measured(&mut self, resumed: bool, cpu: Duration) {
        let known = &mut self.cpu[usize::from(resumed)];
        *known = (*known * 7.0 + cpu.as_secs_f64()) / 8.0;
    }

    /// Records that a task ready on this event loop at `now - delay` runs.
    pub(super) fn ran(&mut self, event_loop: usize, delay: Duration, now: Duration) {
        if let Some(known) = self.loops.get_mut(event_loop) {
            known.front = Delay { delay, measured: now };
            known.congestion.observe(delay + known.behind.at(now), now);
        }
    }

    /// Records that an unknown client ready on this event loop at `now - delay` gets its step.
    pub(super) fn ran_behind(&mut self, event_loop: usize, delay: Duration, now: Duration) {
        if let Some(known) = self.loops.get_mut(event_loop) {
            known.behind = Delay { delay, measured: now };
            known.congestion.observe(delay + known.front.at(now), now);
        }
    }

    /// Returns whether there is a standing queue.
    pub(super) fn is_overloaded(&self, now: Duration) -> bool {
        self.keys.is_on(now) || self.loops.iter().any(|known| known.congestion.is_on(now))
    }

    /// Returns the queueing delay of an unknown client's private-key operation, and the longest delay of an event
    /// loop.
    pub(super) fn delays(&mut self, now: Duration) -> (Duration, Duration) {
        let loops = (0..self.loops.len()).map(|index| self.loop_delay(index, false, now)).max();
        (self.backlog.waits(now).1, loops.unwrap_or_default())
    }

    /// Returns whether the client had successful handshakes recently, and before the queue built up, if there is a
    /// standing queue.
    fn knows(&mut self, client: u64, now: Duration) -> bool {
        if self.is_overloaded(now) {
            return self.known.knew(client, self.calm.saturating_sub(UNNOTICED), now);
        }
        self.calm = now;
        self.known.knows(client, now)
    }

    /// Records the queueing delay of private-key operations, and returns its target.
    fn observe_keys(&mut self, wait: Duration, now: Duration) -> Duration {
        self.keys.target = KEY_TARGET.max(self.backlog.mean() * FEW);
        self.keys.observe(wait, now);
        self.keys.target
    }

    fn admit(&mut self, arrival: &Arrival, known: bool, now: Duration) {
        let on_loop = self.cpu[usize::from(arrival.work == Work::Resumed)];
        let cpu = match arrival.work {
            Work::Queued(key_type) => {
                // Operations of unknown clients were announced when the connection was accepted.
                if known || !self.is_overloaded(now) {
                    self.backlog.announce(key_type, now);
                }
                on_loop + self.backlog.cpu(key_type)
            }
            Work::Resumed | Work::Full => on_loop,
        };
        self.clients.take(arrival.client, cpu, now);
        // A client that offers to resume may still need a private-key operation, and be rejected then.
        if arrival.work != Work::Resumed {
            self.clients.reset_rejections(arrival.client, now);
        }
        self.names.take(arrival.name, cpu, now);
    }

    fn refuse(&mut self, arrival: &Arrival, reason: Refusal, now: Duration) -> Refusal {
        self.clients.count_rejection(arrival.client, now);
        self.press(arrival.event_loop, now);
        reason
    }

    fn press(&mut self, event_loop: usize, now: Duration) {
        self.keys.press(now);
        if let Some(known) = self.loops.get_mut(event_loop) {
            known.congestion.press(now);
        }
    }

    fn loop_stands(&self, event_loop: usize, now: Duration) -> bool {
        self.loops.get(event_loop).is_some_and(|known| known.congestion.is_on(now))
    }

    /// Returns the delay of a ready task until its step, before unknown clients or as one of them.
    fn loop_delay(&self, event_loop: usize, first: bool, now: Duration) -> Duration {
        let Some(known) = self.loops.get(event_loop) else { return Duration::ZERO };
        known.front.at(now) + if first { Duration::ZERO } else { known.behind.at(now) }
    }
}

impl Delay {
    /// Returns the delay, or zero if the measurement is no longer valid.
    fn at(self, now: Duration) -> Duration {
        let holds = now.saturating_sub(self.measured) < LOOP_DELAY_HOLDS.max(self.delay * 2);
        if holds { self.delay } else { Duration::ZERO }
    }
}

impl Refusal {
    /// Returns the value of the metric's label.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Overload => "overload",
            Self::ClientShare => "client_share",
            Self::NameShare => "name_share",
        }
    }
}
