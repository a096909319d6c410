//! Fleets in simulated time: gateways with wrong clocks that read the published ring from time to time.

use super::{Ring, Schedule, UnixTime, decode, encode};
use std::time::Duration;
use zeroize::Zeroizing;

const SECOND: Duration = Duration::from_secs(1);

/// A gateway with a clock that is off by a constant.
struct Gateway {
    ring: Ring,
    ahead: Duration,
    next_look: UnixTime,
    /// Time until which it does nothing, as on a suspended machine.
    asleep_until: UnixTime,
}

struct Fleet {
    schedule: Schedule,
    published: Option<Zeroizing<Vec<u8>>>,
    gateways: Vec<Gateway>,
    now: UnixTime,
    random: u64,
    reachable: bool,
}

impl Fleet {
    fn new(rotation: Duration, gateways: u32, skew: Duration) -> Self {
        // Clocks have a finer resolution than published rings.
        let now = SECOND * 1_800_000_000 + Duration::from_nanos(123_456);
        let schedule = Schedule { rotation };
        let mut fleet =
            Self { schedule, published: None, gateways: Vec::new(), now, random: 7, reachable: true };
        for index in 0..gateways {
            let ahead = skew * index / (gateways - 1).max(1);
            fleet.join(ahead);
        }
        fleet
    }

    fn join(&mut self, ahead: Duration) {
        let ring = Ring::agreed(None, self.published().as_ref(), self.now + ahead, self.schedule);
        self.published = Some(encode(&ring));
        self.gateways.push(Gateway { ring, ahead, next_look: self.now, asleep_until: self.now });
    }

    /// Simulates one step: gateways that are due read the ring, and every gateway makes a ticket for every other.
    /// Returns the number of rejected tickets.
    fn step(&mut self, step: Duration) -> usize {
        self.now += step;
        for index in 0..self.gateways.len() {
            let jitter = self.next_random() % 1000;
            let Self { schedule, published, gateways, now, reachable, .. } = self;
            let gateway = &mut gateways[index];
            if *now < gateway.next_look || *now < gateway.asleep_until || !*reachable {
                continue;
            }
            let theirs = *now + gateway.ahead;
            let read = published.as_ref().and_then(|bytes| decode(bytes));
            gateway.ring = Ring::agreed(Some(&gateway.ring), read.as_ref(), theirs, *schedule);
            *published = Some(encode(&gateway.ring));
            // A random interval between half and one and a half of the nominal one.
            gateway.next_look =
                *now + schedule.poll() / 2 + schedule.poll() * u32::try_from(jitter).unwrap() / 1000;
        }
        self.refused(self.now)
    }

    fn published(&self) -> Option<Ring> {
        self.published.as_ref().and_then(|bytes| decode(bytes))
    }

    fn refused(&self, now: UnixTime) -> usize {
        let awake = || self.gateways.iter().filter(|gateway| gateway.asleep_until <= now);
        let pairs = awake().flat_map(|maker| awake().map(move |reader| (maker, reader)));
        pairs
            .filter(|(maker, reader)| {
                let key = &maker.ring.encrypting(now + maker.ahead).key;
                reader.ring.find(key.name(), now + reader.ahead, self.schedule).is_none()
            })
            .count()
    }

    fn next_random(&mut self) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }
}

#[test]
fn no_gateway_ever_sees_an_unknown_key_with_clocks_a_minute_apart() {
    for minutes in [5, 60, 720] {
        let rotation = SECOND * 60 * minutes;
        let mut fleet = Fleet::new(rotation, 5, SECOND * 60);
        let first = fleet.gateways[0].ring.encrypting(fleet.now).key.clone();
        let steps = 4000;
        for _ in 0..steps {
            assert_eq!(fleet.step(rotation * 20 / steps), 0, "every {minutes} minutes");
        }
        let last = &fleet.gateways[0].ring.encrypting(fleet.now).key;
        assert_ne!(first.name(), last.name(), "it did rotate");
        assert!(fleet.gateways.iter().all(|gateway| gateway.ring.keys().len() <= 4));
    }
}

#[test]
fn fast_rotation_needs_good_clocks_and_nothing_else() {
    let mut fleet = Fleet::new(SECOND * 2, 3, Duration::from_millis(100));
    for _ in 0..10_000 {
        assert_eq!(fleet.step(Duration::from_millis(20)), 0);
    }
}

#[test]
fn a_rotation_on_command_is_seen_by_all_before_it_counts() {
    let mut fleet = Fleet::new(SECOND * 3600, 5, SECOND * 60);
    for _ in 0..200 {
        if fleet.next_random().is_multiple_of(20) {
            let rotated = fleet.published().unwrap().rotated(fleet.now, fleet.schedule);
            fleet.published = Some(encode(&rotated));
        }
        assert_eq!(fleet.step(SECOND * 30), 0);
    }
}

#[test]
fn known_keys_stay_in_use_while_publishing_fails() {
    let mut fleet = Fleet::new(SECOND * 600, 4, SECOND * 60);
    fleet.step(SECOND);
    fleet.reachable = false;
    for _ in 0..100 {
        assert_eq!(fleet.step(SECOND * 120), 0);
    }
    fleet.reachable = true;
    for _ in 0..1000 {
        assert_eq!(fleet.step(SECOND * 5), 0, "nor when it recovers");
    }
}

#[test]
fn a_lost_publication_is_published_again() {
    let mut fleet = Fleet::new(SECOND * 600, 4, SECOND * 30);
    for round in 0..1000 {
        if round % 50 == 0 {
            fleet.published = None;
        }
        assert_eq!(fleet.step(SECOND * 5), 0);
    }
}

#[test]
fn a_gateway_suspended_for_two_rotations_recovers_with_one_read() {
    let rotation = SECOND * 600;
    let mut fleet = Fleet::new(rotation, 3, SECOND * 10);
    fleet.gateways[1].asleep_until = fleet.now + rotation * 5 / 2;
    while fleet.now < fleet.gateways[1].asleep_until - SECOND * 5 {
        assert_eq!(fleet.step(SECOND * 5), 0);
    }
    fleet.step(SECOND * 5);
    assert_eq!(fleet.step(fleet.schedule.poll() * 2), 0);
}

#[test]
fn a_joining_gateway_learns_all_keys_and_adds_none() {
    let mut fleet = Fleet::new(SECOND * 600, 2, SECOND);
    for _ in 0..100 {
        fleet.step(SECOND * 60);
        let before = fleet.published().unwrap();
        fleet.join(SECOND);
        assert_eq!(fleet.refused(fleet.now), 0);
        assert!(fleet.published().unwrap().keys().len() <= before.keys().len() + 1);
        fleet.gateways.truncate(2);
    }
}
