//! Estimate of the queueing delay of private-key operations: the work that is queued, in time of all compute threads
//! together, at the pace measured most recently.

use quadrille_engine::KeyType;
use std::{collections::BTreeMap, time::Duration};

/// Time within which an announced operation is submitted, if at all.
const ANNOUNCED_FOR: Duration = Duration::from_millis(50);
/// Time after which another backend that has computed nothing is left out of the estimate.
const ELSEWHERE_FOR: Duration = Duration::from_secs(1);
/// Seconds per operation before any measurement: RSA-2048, one at a time.
const FIRST_GUESS: f64 = 1e-3;

/// The queued operations. Times are relative to an arbitrary epoch.
pub(super) struct Backlog {
    threads: f64,
    paces: BTreeMap<KeyType, Pace>,
    /// Key type of the operation that was submitted last.
    latest: Option<KeyType>,
    urgent: Duration,
    all: Duration,
    /// Number of operations in `all`.
    queued: u32,
    /// Work announced by the handshakes admitted in this time slice and the one before, and not submitted yet.
    announced: [Duration; 2],
    slice: u64,
}

/// Throughput in operations per second.
#[derive(Clone, Copy, Debug, Default)]
struct Pace {
    here: Option<f64>,
    elsewhere: f64,
    elsewhere_seen: Duration,
}

/// An operation that is queued or being computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    time: Duration,
    urgent: bool,
}

impl Backlog {
    pub(super) fn new(threads: usize) -> Self {
        let (urgent, all, announced) = (Duration::ZERO, Duration::ZERO, [Duration::ZERO; 2]);
        let (threads, paces) = (threads as f64, BTreeMap::new());
        Self { threads, paces, latest: None, urgent, all, queued: 0, announced, slice: 0 }
    }

    /// Records a computed batch of operations, of a compute thread or another backend.
    pub(super) fn computed(
        &mut self,
        key_type: KeyType,
        operations: usize,
        took: Duration,
        elsewhere: bool,
        now: Duration,
    ) {
        let rate = operations as f64 / took.as_secs_f64().max(1e-9);
        let pace = self.paces.entry(key_type).or_default();
        if elsewhere {
            (pace.elsewhere, pace.elsewhere_seen) = (rate, now);
        } else {
            let rate = rate * self.threads;
            // Averages times rather than rates: an occasional single operation says little about full batches.
            pace.here = Some(pace.here.map_or(rate, |known| 8.0 / (7.0 / known + 1.0 / rate)));
        }
    }

    /// Returns the CPU time of an operation, in seconds.
    pub(super) fn cpu(&self, key_type: KeyType) -> f64 {
        let here = self.paces.get(&key_type).and_then(|pace| pace.here);
        here.map_or(FIRST_GUESS, |rate| self.threads / rate)
    }

    /// Announces the operation of a handshake that was admitted.
    pub(super) fn announce(&mut self, key_type: KeyType, now: Duration) {
        self.advance_to(now);
        self.announced[0] += self.each(key_type, now);
    }

    /// Announces the operation of a connection that was accepted, assuming the key type of the last one.
    pub(super) fn expect(&mut self, now: Duration) {
        if let Some(key_type) = self.latest {
            self.announce(key_type, now);
        }
    }

    /// Adds an operation that is submitted.
    pub(super) fn enter(&mut self, key_type: KeyType, urgent: bool, now: Duration) -> Pending {
        self.advance_to(now);
        let time = self.each(key_type, now);
        let [new, old] = self.announced;
        let left = time.saturating_sub(old);
        self.latest = Some(key_type);
        self.announced = [new.saturating_sub(left), old.saturating_sub(time)];
        self.all += time;
        self.queued = self.queued.saturating_add(1);
        if urgent {
            self.urgent += time;
        }
        Pending { time, urgent }
    }

    /// Removes an operation that was computed or canceled.
    pub(super) fn leave(&mut self, Pending { time, urgent }: Pending) {
        self.all = self.all.saturating_sub(time);
        self.queued = self.queued.saturating_sub(1);
        if urgent {
            self.urgent = self.urgent.saturating_sub(time);
        }
    }

    /// Returns the mean time of the queued operations; zero if none is queued.
    pub(super) fn mean(&self) -> Duration {
        self.all / self.queued.max(1)
    }

    /// Returns the queueing delay of an operation submitted now.
    pub(super) fn ahead_of(&self, urgent: bool) -> Duration {
        if urgent { self.urgent } else { self.all }
    }

    /// Returns the queueing delay of a new handshake's operation behind the urgent operations, and behind all.
    pub(super) fn waits(&mut self, now: Duration) -> (Duration, Duration) {
        self.advance_to(now);
        (self.urgent, self.all + self.announced[0] + self.announced[1])
    }

    fn each(&self, key_type: KeyType, now: Duration) -> Duration {
        let Some(pace) = self.paces.get(&key_type) else {
            return Duration::from_secs_f64(FIRST_GUESS / self.threads);
        };
        let helped = now.saturating_sub(pace.elsewhere_seen) < ELSEWHERE_FOR;
        let rate =
            pace.here.unwrap_or(self.threads / FIRST_GUESS) + if helped { pace.elsewhere } else { 0.0 };
        Duration::from_secs_f64(1.0 / rate)
    }

    fn advance_to(&mut self, now: Duration) {
        let slice = (now.as_nanos() / ANNOUNCED_FOR.as_nanos()) as u64;
        match slice.saturating_sub(self.slice) {
            0 => return,
            1 => self.announced = [Duration::ZERO, self.announced[0]],
            _ => self.announced = [Duration::ZERO; 2],
        }
        self.slice = slice;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RSA: KeyType = KeyType::Rsa { bits: 2048 };

    fn at(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds)
    }

    /// Two threads that take a millisecond for each operation.
    fn backlog() -> Backlog {
        let mut backlog = Backlog::new(2);
        backlog.computed(RSA, 8, at(8), false, at(0));
        backlog
    }

    #[test]
    fn what_waits_is_known_by_its_time() {
        let mut backlog = backlog();
        assert_eq!(backlog.cpu(RSA), 1e-3);
        let pending: Vec<_> = (0..100).map(|index| backlog.enter(RSA, index % 2 == 0, at(1))).collect();
        let (urgent, all) = backlog.waits(at(1));
        assert_eq!((urgent.as_millis(), all.as_millis()), (25, 50));
        assert_eq!(backlog.mean(), at(1) / 2);
        pending.into_iter().for_each(|pending| backlog.leave(pending));
        assert_eq!(backlog.waits(at(1)), (at(0), at(0)));
    }

    #[test]
    fn what_was_announced_counts_until_it_is_there_and_not_for_ever() {
        let mut backlog = backlog();
        (0..100).for_each(|_| backlog.announce(RSA, at(1)));
        assert_eq!(backlog.waits(at(1)).1.as_millis(), 50);
        (0..50).for_each(|_| _ = backlog.enter(RSA, false, at(60)));
        assert_eq!(backlog.waits(at(60)).1.as_millis(), 50, "half are submitted, the others may follow");
        assert_eq!(backlog.waits(at(120)).1.as_millis(), 25, "the announcement of the others has expired");
    }

    #[test]
    fn help_from_elsewhere_counts_while_it_lasts() {
        let mut backlog = backlog();
        backlog.computed(RSA, 100, at(50), true, at(1000));
        let pending = backlog.enter(RSA, false, at(1500));
        assert_eq!(pending.time, at(1) / 4);
        backlog.leave(pending);
        assert_eq!(backlog.enter(RSA, false, at(2000)).time, at(1) / 2);
    }
}
