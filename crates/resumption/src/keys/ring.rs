//! The ring of ticket keys: the key that encrypts, the keys that still decrypt, and the time by which the next is
//! due.
//!
//! ```text
//!          previous              current                 next
//!   ───|───────────────────|───────────────────|───────────────────|──> time
//!      from                from      now        from
//!      decrypts            encrypts, decrypts   published, decrypts, will encrypt
//! ```
//!
//! A ring is a set of keys, each with the time from which it encrypts. Rings of several machines are merged by union,
//! so the order in which machines learn of each other does not matter. Replaying an old ring adds nothing: its keys
//! have been dropped long ago.

use super::{TicketKey, UnixTime};
use std::{sync::Arc, time::Duration};

/// Ticket keys with their times. All methods that depend on time take `now`.
#[derive(Clone, Debug)]
pub struct Ring {
    /// Oldest first; never empty.
    keys: Vec<Scheduled>,
    /// Whether keys expire.
    rotates: bool,
}

/// A key and the time from which it encrypts.
#[derive(Clone, Debug)]
pub struct Scheduled {
    /// The key.
    pub key: Arc<TicketKey>,
    /// Time from which the key encrypts.
    pub from: UnixTime,
}

/// Rotation settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Time for which a key encrypts. It is published for as long before, and accepted for as long after.
    pub rotation: Duration,
}

/// Clock skew that does not cause unknown keys, unless keys rotate faster than that.
const SKEW: Duration = Duration::from_secs(60);

/// Maximum number of keys. Bounds rings against rotations on command or a broken clock.
const MOST: usize = 32;

impl Schedule {
    /// Returns the interval at which the published ring is read. It is short compared with the time for which a key
    /// is published before use.
    pub fn poll(self) -> Duration {
        (self.rotation / 8).clamp(Duration::from_millis(50), Duration::from_secs(20))
    }

    /// Returns the delay after which a key created out of turn starts to encrypt, when all gateways have seen it.
    pub fn lead(self) -> Duration {
        (SKEW + self.poll() * 3 / 2).min(self.rotation / 2)
    }

    fn skew(self) -> Duration {
        SKEW.min(self.rotation / 4)
    }
}

impl Ring {
    /// Returns a ring of externally managed keys: the first encrypts, the others decrypt, and none expires. `None`
    /// without any key.
    pub fn fixed(keys: Vec<TicketKey>) -> Option<Self> {
        let scheduled = |key| Scheduled { key: Arc::new(key), from: UnixTime::ZERO };
        let keys: Vec<_> = keys.into_iter().rev().map(scheduled).collect();
        (!keys.is_empty()).then_some(Self { keys, rotates: false })
    }

    /// Returns the ring of a process that has not seen another ring. Its key counts as the oldest of all, so that it
    /// yields to the keys of a ring that it is merged with.
    pub fn provisional() -> Self {
        let key = Arc::new(TicketKey::random());
        Self { keys: vec![Scheduled { key, from: UnixTime::ZERO }], rotates: true }
    }

    /// Makes a provisional ring permanent: its key starts now, so other rings do not replace it.
    pub fn begun(mut self, now: UnixTime) -> Self {
        if let [only] = &mut self.keys[..]
            && only.from.is_zero()
        {
            only.from = whole(now);
        }
        self
    }

    /// Returns the current ring of a member that holds `own` and reads `published`: all keys of both.
    pub fn agreed(own: Option<&Self>, published: Option<&Self>, now: UnixTime, schedule: Schedule) -> Self {
        let known = match (own, published) {
            (Some(own), Some(published)) => own.merged(published),
            (None, Some(published)) => published.clone(),
            (Some(own), None) => own.clone().begun(now),
            (None, None) => Self::provisional().begun(now),
        };
        known.advanced(now, schedule)
    }

    /// Creates a ring of these keys; `None` without any.
    pub(crate) fn from_keys(mut keys: Vec<Scheduled>) -> Option<Self> {
        keys.sort_by(|one, other| order(one).cmp(&order(other)));
        keys.dedup_by(|one, other| order(one) == order(other));
        (!keys.is_empty()).then_some(Self { keys, rotates: true })
    }

    /// Returns the key that encrypts: the youngest whose time has come.
    pub fn encrypting(&self, now: UnixTime) -> &Scheduled {
        &self.keys[self.current(now)]
    }

    /// Returns the key of this name if tickets made with it are still accepted. A key whose time has not come is
    /// accepted too: another machine's clock may be ahead.
    pub fn find(&self, name: &[u8], now: UnixTime, schedule: Schedule) -> Option<&Arc<TicketKey>> {
        let newest_first = self.keys.iter().enumerate().rev();
        let mut named = newest_first.filter(|(_, scheduled)| scheduled.key.name()[..] == *name);
        named.find(|(index, _)| self.is_accepted(*index, now, schedule)).map(|(_, found)| &found.key)
    }

    /// Returns this ring with the keys of `other` added.
    pub fn merged(&self, other: &Self) -> Self {
        Self::from_keys([&self.keys[..], &other.keys[..]].concat()).unwrap_or_else(|| self.clone())
    }

    /// Returns this ring brought up to date: with a next key, and without keys whose tickets are no longer accepted.
    pub fn advanced(&self, now: UnixTime, schedule: Schedule) -> Self {
        let mut keys = self.keys.clone();
        // A key made by a clock that was far ahead does not count as the next key: no other would be made until its
        // time.
        let furthest = now + schedule.rotation * 2 + schedule.lead() + schedule.skew();
        let near = keys.partition_point(|scheduled| scheduled.from <= furthest);
        let last = keys[..near].last().map(|last| last.from);
        if last.is_none_or(|last| last <= now) {
            let soonest = now + schedule.lead();
            let from = last.map_or(soonest, |last| (last + schedule.rotation).max(soonest));
            keys.insert(near, Scheduled { key: Arc::new(TicketKey::random()), from: whole(from) });
        }
        let dropped =
            (0..self.keys.len()).take_while(|&index| !self.is_accepted(index, now, schedule)).count();
        keys.drain(..dropped.max(keys.len().saturating_sub(MOST)));
        Self { keys, rotates: self.rotates }
    }

    /// Returns this ring with a new key that takes over once all gateways have seen it.
    pub fn rotated(&self, now: UnixTime, schedule: Schedule) -> Self {
        let mut ring = self.clone();
        let from = whole(now + schedule.lead());
        ring.keys.push(Scheduled { key: Arc::new(TicketKey::random()), from });
        Self::from_keys(ring.keys).unwrap_or_else(|| self.clone())
    }

    /// Returns all keys, oldest first.
    pub fn keys(&self) -> &[Scheduled] {
        &self.keys
    }

    /// Returns the next key and its time, if it is known.
    pub fn next(&self, now: UnixTime) -> Option<&Scheduled> {
        self.keys.iter().find(|scheduled| scheduled.from > now)
    }

    /// Returns whether both rings have the same keys at the same times.
    pub fn same(&self, other: &Self) -> bool {
        self.keys.iter().map(order).eq(other.keys.iter().map(order))
    }

    fn current(&self, now: UnixTime) -> usize {
        self.keys.iter().rposition(|scheduled| scheduled.from <= now).unwrap_or(0)
    }

    /// Returns whether the key is accepted: until its successor has encrypted for one rotation. The last key does not
    /// expire: without a new key it stays in use.
    fn is_accepted(&self, index: usize, now: UnixTime, schedule: Schedule) -> bool {
        let Some(successor) = self.keys.get(index + 1).filter(|_| self.rotates) else { return true };
        now < successor.from + schedule.rotation + schedule.skew()
    }
}

/// Rounds down to milliseconds, the resolution of published rings: a key must be unchanged after publication.
fn whole(time: UnixTime) -> UnixTime {
    Duration::new(time.as_secs(), time.subsec_millis() * 1_000_000)
}

fn order(scheduled: &Scheduled) -> (UnixTime, &[u8; 16]) {
    (scheduled.from, scheduled.key.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);
    const SCHEDULE: Schedule = Schedule { rotation: Duration::from_secs(12 * 3600) };

    fn start() -> UnixTime {
        Duration::from_secs(1_800_000_000)
    }

    fn fresh() -> Ring {
        Ring::provisional().begun(start()).advanced(start(), SCHEDULE)
    }

    fn accepts(ring: &Ring, key: &Scheduled, now: UnixTime) -> bool {
        ring.find(key.key.name(), now, SCHEDULE).is_some()
    }

    #[test]
    fn a_fresh_ring_encrypts_and_knows_its_next_key() {
        let ring = fresh();
        assert_eq!(ring.keys().len(), 2);
        assert_eq!(ring.encrypting(start()).key.name(), ring.keys()[0].key.name());
        assert_eq!(ring.next(start()).unwrap().from, start() + SCHEDULE.rotation);
        assert!(accepts(&ring, &ring.keys()[1], start()), "another's clock may be ahead");
    }

    #[test]
    fn a_key_lives_three_times_its_rotation() {
        let mut ring = fresh();
        let next = ring.keys()[1].clone();
        let mut seen = Vec::new();
        for hour in 0..48 {
            let now = start() + HOUR * hour;
            ring = ring.advanced(now, SCHEDULE);
            let encrypts = ring.encrypting(now).key.name() == next.key.name();
            seen.push((accepts(&ring, &next, now), encrypts));
        }
        let hours = |wanted: fn(&(bool, bool)) -> bool| seen.iter().filter(|seen| wanted(seen)).count();
        assert_eq!(hours(|(accepted, _)| *accepted), 37, "12 before, 12 in use, 12 after, and the skew");
        assert_eq!(hours(|(_, encrypts)| *encrypts), 12);
    }

    #[test]
    fn rings_stay_small() {
        let mut ring = fresh();
        for hour in 0..1000 {
            ring = ring.advanced(start() + HOUR * hour, SCHEDULE);
            assert!(ring.keys().len() <= 4, "{} keys", ring.keys().len());
        }
        for _ in 0..100 {
            ring = ring.rotated(start() + HOUR * 1000, SCHEDULE).advanced(start() + HOUR * 1000, SCHEDULE);
        }
        assert_eq!(ring.keys().len(), MOST);
    }

    #[test]
    fn a_rotation_on_command_waits_until_all_gateways_know_the_key() {
        let before = fresh();
        let now = start() + HOUR;
        let ring = before.rotated(now, SCHEDULE);
        assert!(before.encrypting(now).key.name() == ring.encrypting(now).key.name());
        let later = now + SCHEDULE.lead();
        assert!(before.encrypting(later).key.name() != ring.encrypting(later).key.name());
        assert!(accepts(&ring, &before.keys()[0], later), "its tickets stay valid");
        assert!(SCHEDULE.lead() > SKEW + SCHEDULE.poll());
    }

    #[test]
    fn without_a_new_key_the_last_one_stays_in_use() {
        let ring = fresh();
        let now = start() + HOUR * 1000;
        let last = ring.encrypting(now);
        assert_eq!(last.key.name(), ring.keys()[1].key.name());
        assert!(accepts(&ring, last, now));
        assert!(!accepts(&ring, &ring.keys()[0], now));
        let next = ring.advanced(now, SCHEDULE).next(now).unwrap().from;
        assert_eq!(next, now + SCHEDULE.lead(), "but a new key follows soon");
    }

    #[test]
    fn a_clock_that_was_far_ahead_does_not_stop_the_rotation() {
        let year = HOUR * 24 * 365;
        let mut ring = fresh();
        let ahead = ring.advanced(start() + year, SCHEDULE);
        assert!(ahead.keys().iter().any(|scheduled| scheduled.from > start() + year));
        let mut encrypted = std::collections::BTreeSet::new();
        for hour in 0..48 {
            let now = start() + HOUR * hour;
            // The other member's ring is merged again and again.
            ring = ring.merged(&ahead).advanced(now, SCHEDULE);
            encrypted.insert(*ring.encrypting(now).key.name());
            assert!(ring.keys().len() <= 6, "{} keys", ring.keys().len());
        }
        assert_eq!(encrypted.len(), 4);
        // A process whose own clock was set back continues with a new key.
        let (now, before) = (start() - year, fresh());
        let after = before.advanced(now, SCHEDULE);
        assert_eq!(after.encrypting(now).from, now + SCHEDULE.lead());
        // A process whose clock is behind removes no keys of others.
        assert!(before.keys().iter().all(|key| after.keys().iter().any(|kept| order(kept) == order(key))));
    }

    #[test]
    fn merging_is_a_union_in_any_order() {
        let (one, other) = (fresh(), fresh());
        assert!(one.merged(&other).same(&other.merged(&one)));
        assert!(one.merged(&one).same(&one));
        assert_eq!(one.merged(&other).keys().len(), 4);
    }

    #[test]
    fn a_provisional_key_yields() {
        let (fleet, alone) = (fresh(), Ring::provisional());
        let merged = alone.merged(&fleet);
        assert_eq!(merged.encrypting(start()).key.name(), fleet.encrypting(start()).key.name());
        assert!(accepts(&merged, &alone.keys()[0], start()), "its tickets stay valid for a while");
    }

    #[test]
    fn an_old_ring_played_back_adds_nothing() {
        let old = fresh();
        let now = start() + HOUR * 100;
        let mut ring = old.clone();
        for hour in 0..=100 {
            ring = ring.advanced(start() + HOUR * hour, SCHEDULE);
        }
        let merged = ring.merged(&old).advanced(now, SCHEDULE);
        assert!(merged.same(&ring));
    }

    #[test]
    fn fixed_keys_encrypt_with_the_first_and_never_end() {
        let keys: Vec<_> = (0..3).map(|_| TicketKey::random()).collect();
        let ring = Ring::fixed(keys.clone()).unwrap();
        let now = start() + HOUR * 10_000;
        assert_eq!(ring.encrypting(now).key.name(), keys[0].name());
        assert!(keys.iter().all(|key| ring.find(key.name(), now, SCHEDULE).is_some()));
        assert!(ring.find(TicketKey::random().name(), now, SCHEDULE).is_none());
        assert!(Ring::fixed(Vec::new()).is_none());
    }
}
