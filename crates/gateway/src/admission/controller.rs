//! Who is let in while there is more to do than can be done. Pure: it is told what has happened and when, and decides.
//!
//! Whoever comes is let in as long as no queue stands (`congestion`) and its handshake will be done in time. Once one
//! stands, the more somebody is wanted, the longer a queue it finds open: resumed sessions, then clients that were here
//! lately, then strangers, then whoever has taken more than its share.

use super::{
    acquaintances::Acquaintances,
    backlog::{Backlog, Pending},
    congestion::Congestion,
    shares::Shares,
};
use quadrille_engine::KeyType;
use std::time::Duration;

/// Strangers find the queue of private-key operations closed beyond this. It is the wait of those who are let in, and
/// the time in which a burst may be worked off. Clients that are known pass by it.
pub(super) const KEY_TARGET: Duration = Duration::from_millis(250);
/// The same of an event loop, for the turns of strangers. Clients that are known wait for none of these.
pub(super) const LOOP_TARGET: Duration = Duration::from_millis(50);
/// While a queue stands, strangers find the door closed beyond this wait for their turn, which is enough for an event loop
/// never to be without work.
const TURN_TARGET: Duration = Duration::from_millis(10);
/// Of a target: strangers that found the door open were counted there, and are not refused for each other's sake.
const WITHIN: f64 = 1.5;
/// A queue has to be above its target for so long.
const INTERVAL: Duration = Duration::from_millis(250);

/// Of a target: clients that are known wait for each other only, but on an event loop also for what is no handshake.
const KNOWN_ON_LOOP: f64 = 4.0;
/// Of a target: whoever has taken more than its share gets what is left when others hardly wait.
const CLIENT_OVER_SHARE: f64 = 0.25;
const NAME_OVER_SHARE: f64 = 0.5;

/// A flood begins before it is noticed, by the interval of a queue and what it takes to come to its target. Who came for the
/// first time then is no acquaintance of before.
const UNNOTICED: Duration = Duration::from_secs(1);

/// Whoever was refused so often in a row is not heard any more, except now and then.
const REFUSED_UNHEARD: u8 = 8;
const HEARD_ONE_IN: u32 = 16;

/// A measurement of an event loop's delay says nothing about later times than this.
const LOOP_DELAY_HOLDS: Duration = Duration::from_millis(200);

/// CPU of handshakes on an event loop, before any was measured, in seconds: full ones and resumed ones.
const FIRST_GUESS: [f64; 2] = [150e-6, 80e-6];

const CLIENTS: usize = 32 * 1024;
const NAMES: usize = 4 * 1024;
const KNOWN: usize = 64 * 1024;

/// Decides for a process. Times are since some epoch.
pub(super) struct Controller {
    clients: Shares,
    names: Shares,
    known: Acquaintances,
    /// When no queue stood for the last time.
    calm: Duration,
    backlog: Backlog,
    keys: Congestion,
    loops: Vec<EventLoop>,
    /// CPU of a full handshake and of a resumed one on its event loop, in seconds.
    cpu: [f64; 2],
    unheard: u32,
}

#[derive(Clone, Copy)]
struct EventLoop {
    congestion: Congestion,
    /// Of whoever is ready.
    front: Delay,
    /// Of strangers, whose turns come behind all who are ready.
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
    /// Since it was accepted.
    pub(super) age: Duration,
    /// When it has to be complete, counted from its acceptance.
    pub(super) deadline: Duration,
    pub(super) work: Work,
}

/// What a handshake costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// No private-key operation.
    Resumed,
    /// One on the event loop's own thread, or on another machine.
    Full,
    /// One that waits for a compute thread.
    Queued(KeyType),
}

/// A handshake that was let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admitted {
    /// Its private-key operation passes by those of others.
    pub(super) urgent: bool,
    /// On its event loop it goes before strangers.
    pub(super) first: bool,
}

/// Why a handshake was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It would not have been complete in time.
    Deadline,
    /// A queue stands.
    Overload,
    /// A queue stands, and the client's network has taken more than its share.
    ClientShare,
    /// A queue stands, and the name has taken more than its share.
    NameShare,
}

/// For whom the door is open before a handshake begins. It is for all while no queue stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    /// For strangers, if they resume a session.
    ForSessions,
    /// For strangers, if they resume a session, or if their private-key operation waits in no queue.
    ForSessionsAndKeysInPlace,
    /// The client was refused many times in a row, and is not heard any more but now and then.
    Closed,
}

impl Controller {
    /// For so many event loops and compute threads.
    pub(super) fn new(event_loops: usize, compute_threads: usize) -> Self {
        let congestion = Congestion::new(LOOP_TARGET, INTERVAL);
        let idle = EventLoop { congestion, front: Delay::default(), behind: Delay::default() };
        Self {
            clients: Shares::new(CLIENTS),
            names: Shares::new(NAMES),
            known: Acquaintances::new(KNOWN),
            calm: Duration::ZERO,
            backlog: Backlog::new(compute_threads),
            keys: Congestion::new(KEY_TARGET, INTERVAL),
            loops: vec![idle; event_loops],
            cpu: FIRST_GUESS,
            unheard: 0,
        }
    }

    /// Whether this handshake goes on.
    pub(super) fn arrive(&mut self, arrival: &Arrival, now: Duration) -> Result<Admitted, Refusal> {
        let (client, name) = (self.clients.ask(arrival.client, now), self.names.ask(arrival.name, now));
        let known = self.knows(arrival.client, now);
        let (urgent_wait, whole_wait) = self.backlog.waits(now);
        self.keys.observe(whole_wait, now);
        let is_queued = matches!(arrival.work, Work::Queued(_));
        // The rest of the queue is for strangers: who is known and takes no more than its share passes by.
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
            let full = share_of(whole_wait, KEY_TARGET).max(share_of(whole_delay, LOOP_TARGET));
            if !(CLIENT_OVER_SHARE..0.5).contains(&full) {
                self.clients.adjust(full >= 0.5, now);
                self.names.adjust(full >= 0.5, now);
            }
            let within = if known || client.is_over { 1.0 } else { WITHIN };
            let keys_full = keys_stand && key_wait > KEY_TARGET.mul_f64(open * within);
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

    /// Whether this client's handshakes go before those of strangers on their event loops.
    pub(super) fn goes_first(&mut self, client: u64, now: Duration) -> bool {
        self.knows(client, now) && !self.clients.ask(client, now).is_over
    }

    /// For whom the door is open, before anything that this client sends is looked at.
    pub(super) fn door(&mut self, client: u64, event_loop: usize, now: Duration) -> Door {
        let standing = self.clients.ask(client, now);
        let loop_delay = self.loop_delay(event_loop, false, now);
        let (loop_stands, keys_stand) = (self.loop_stands(event_loop, now), self.keys.is_on(now));
        if !loop_stands && !keys_stand {
            return Door::Open;
        }
        if standing.is_over && standing.refused_in_a_row >= REFUSED_UNHEARD {
            self.press(event_loop, now);
            self.unheard = self.unheard.wrapping_add(1);
            return if self.unheard.is_multiple_of(HEARD_ONE_IN) { Door::Open } else { Door::Closed };
        }
        let behind = self.loops.get(event_loop).map_or(Duration::ZERO, |known| known.behind.at(now));
        let loop_full = loop_stands && loop_delay > LOOP_TARGET || behind > TURN_TARGET;
        let keys_full = keys_stand && self.backlog.waits(now).1 > KEY_TARGET;
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

    /// This client found the door closed for what it wants.
    pub(super) fn refuse_at_door(&mut self, client: u64, event_loop: usize, now: Duration) -> Refusal {
        self.clients.adjust(true, now);
        self.names.adjust(true, now);
        self.clients.refuse(client, now);
        self.press(event_loop, now);
        Refusal::Overload
    }

    /// How long a private-key operation waits that is handed in now.
    pub(super) fn key_wait(&self, urgent: bool) -> Duration {
        self.backlog.ahead_of(urgent)
    }

    /// A private-key operation was handed in.
    pub(super) fn enter(&mut self, key_type: KeyType, urgent: bool, now: Duration) -> Pending {
        self.backlog.enter(key_type, urgent, now)
    }

    /// It was computed, or nobody waits for it any more.
    pub(super) fn leave(&mut self, pending: Pending, now: Duration) {
        self.backlog.leave(pending);
        let (_, wait) = self.backlog.waits(now);
        self.keys.observe(wait, now);
    }

    /// A batch of private-key operations was computed.
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

    /// A handshake has succeeded. While a queue stands nobody new becomes known: a flood from many networks would soon
    /// be a flood of acquaintances.
    pub(super) fn complete(&mut self, client: u64, now: Duration) {
        self.clients.welcome(client, now);
        if self.knows(client, now) || !self.is_overloaded(now) {
            self.known.meet(client, now);
        }
    }

    /// What a handshake has cost on its event loop was measured.
    pub(super) fn measured(&mut self, resumed: bool, cpu: Duration) {
        let known = &mut self.cpu[usize::from(resumed)];
        *known = (*known * 7.0 + cpu.as_secs_f64()) / 8.0;
    }

    /// Whoever was ready on this event loop at `now - delay` has had its turn.
    pub(super) fn turned(&mut self, event_loop: usize, delay: Duration, now: Duration) {
        if let Some(known) = self.loops.get_mut(event_loop) {
            known.front = Delay { delay, measured: now };
            known.congestion.observe(delay + known.behind.at(now), now);
        }
    }

    /// A stranger who was ready on this event loop at `now - delay` has its turn.
    pub(super) fn turned_behind(&mut self, event_loop: usize, delay: Duration, now: Duration) {
        if let Some(known) = self.loops.get_mut(event_loop) {
            known.behind = Delay { delay, measured: now };
            known.congestion.observe(delay + known.front.at(now), now);
        }
    }

    /// Whether any queue stands.
    pub(super) fn is_overloaded(&self, now: Duration) -> bool {
        self.keys.is_on(now) || self.loops.iter().any(|known| known.congestion.is_on(now))
    }

    /// How long a stranger's private-key operation would wait, and the longest delay of an event loop.
    pub(super) fn delays(&mut self, now: Duration) -> (Duration, Duration) {
        let loops = (0..self.loops.len()).map(|index| self.loop_delay(index, false, now)).max();
        (self.backlog.waits(now).1, loops.unwrap_or_default())
    }

    /// Whether its handshakes have succeeded lately, and before the queue stood, if one does.
    fn knows(&mut self, client: u64, now: Duration) -> bool {
        if self.is_overloaded(now) {
            return self.known.knew(client, self.calm.saturating_sub(UNNOTICED), now);
        }
        self.calm = now;
        self.known.knows(client, now)
    }

    fn admit(&mut self, arrival: &Arrival, known: bool, now: Duration) {
        let on_loop = self.cpu[usize::from(arrival.work == Work::Resumed)];
        let cpu = match arrival.work {
            Work::Queued(key_type) => {
                // Strangers were expected since they came in.
                if known || !self.is_overloaded(now) {
                    self.backlog.announce(key_type, now);
                }
                on_loop + self.backlog.cpu(key_type)
            }
            Work::Resumed | Work::Full => on_loop,
        };
        self.clients.take(arrival.client, cpu, now);
        // Who only says to resume may still want a private-key operation, and be refused that.
        if arrival.work != Work::Resumed {
            self.clients.welcome(arrival.client, now);
        }
        self.names.take(arrival.name, cpu, now);
    }

    fn refuse(&mut self, arrival: &Arrival, reason: Refusal, now: Duration) -> Refusal {
        self.clients.refuse(arrival.client, now);
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

    /// How long who is ready waits for its turn, before strangers or as one of them.
    fn loop_delay(&self, event_loop: usize, first: bool, now: Duration) -> Duration {
        let Some(known) = self.loops.get(event_loop) else { return Duration::ZERO };
        known.front.at(now) + if first { Duration::ZERO } else { known.behind.at(now) }
    }
}

impl Delay {
    /// As far as it says anything of this time.
    fn at(self, now: Duration) -> Duration {
        let holds = now.saturating_sub(self.measured) < LOOP_DELAY_HOLDS.max(self.delay * 2);
        if holds { self.delay } else { Duration::ZERO }
    }
}

impl Refusal {
    /// As metrics call it.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Deadline => "deadline",
            Self::Overload => "overload",
            Self::ClientShare => "client_share",
            Self::NameShare => "name_share",
        }
    }
}
