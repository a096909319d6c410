//! Simulation of a machine under four times its capacity, in simulated time.

use super::{
    backlog::Pending,
    controller::{Arrival, Controller, Door, Refusal, Work},
};
use quadrille_engine::KeyType;
use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

const RSA: KeyType = KeyType::Rsa { bits: 2048 };
/// One compute thread that performs one operation at a time.
const OPERATION: Duration = Duration::from_millis(1);
const TICK: Duration = Duration::from_micros(100);
const DEADLINE: Duration = Duration::from_secs(3);

/// A group of similar clients.
#[derive(Clone, Copy)]
struct Population {
    label: &'static str,
    /// Arrivals per operation that the machine could perform.
    load: f64,
    networks: u64,
}

#[derive(Default)]
struct Seen {
    arrived: usize,
    refused: usize,
    waits: Vec<Duration>,
}

struct Simulation {
    controller: Controller,
    now: Duration,
    random: u64,
    urgent: VecDeque<Operation>,
    others: VecDeque<Operation>,
    computing: Option<(Duration, Operation)>,
    taken: usize,
    seen: HashMap<&'static str, Seen>,
    reasons: Vec<Refusal>,
}

struct Operation {
    label: &'static str,
    client: u64,
    came: Duration,
    pending: Pending,
}

impl Simulation {
    fn new() -> Self {
        let mut controller = Controller::new(1, 1);
        controller.computed(RSA, 1, OPERATION, false, Duration::ZERO);
        Self {
            controller,
            now: Duration::from_secs(10),
            random: 1,
            urgent: VecDeque::new(),
            others: VecDeque::new(),
            computing: None,
            taken: 0,
            seen: HashMap::new(),
            reasons: Vec::new(),
        }
    }

    /// Makes the clients' networks known.
    fn know(&mut self, population: Population) {
        for network in 0..population.networks {
            self.controller.complete(key(population.label, network), self.now);
        }
    }

    /// Resets the counters, and runs for the given time.
    fn run(&mut self, seconds: u64, populations: &[Population]) {
        self.seen.clear();
        let end = self.now + Duration::from_secs(seconds);
        while self.now < end {
            for population in populations {
                let chance = population.load * TICK.as_secs_f64() / OPERATION.as_secs_f64();
                if self.random() < chance {
                    let network = (self.random() * population.networks as f64) as u64;
                    self.arrive(population.label, key(population.label, network));
                }
            }
            self.compute();
            self.now += TICK;
        }
    }

    fn arrive(&mut self, label: &'static str, client: u64) {
        let seen = self.seen.entry(label).or_default();
        seen.arrived += 1;
        let refused = match self.controller.door(client, 0, self.now) {
            Door::Open => None,
            Door::Closed => Some(Refusal::ClientShare),
            Door::ForSessions | Door::ForSessionsAndKeysInPlace => {
                Some(self.controller.refuse_at_door(client, 0, self.now))
            }
        };
        if let Some(reason) = refused {
            seen.refused += 1;
            self.reasons.push(reason);
            return;
        }
        let (age, work) = (Duration::ZERO, Work::Queued(RSA));
        let arrival = Arrival { client, name: 1, event_loop: 0, age, deadline: DEADLINE, work };
        match self.controller.arrive(&arrival, self.now) {
            Ok(admitted) => {
                let pending = self.controller.enter(RSA, admitted.urgent, self.now);
                let operation = Operation { label, client, came: self.now, pending };
                if admitted.urgent { &mut self.urgent } else { &mut self.others }.push_back(operation);
            }
            Err(reason) => {
                seen.refused += 1;
                self.reasons.push(reason);
            }
        }
    }

    fn compute(&mut self) {
        if self.computing.as_ref().is_some_and(|(due, _)| *due <= self.now)
            && let Some((_, operation)) = self.computing.take()
        {
            let Operation { label, client, came, pending } = operation;
            self.controller.leave(pending, self.now);
            self.controller.complete(client, self.now);
            self.seen.entry(label).or_default().waits.push(self.now - came);
        }
        if self.computing.is_none() {
            self.taken += 1;
            let (first, second) = match self.taken % 8 {
                0 => (&mut self.others, &mut self.urgent),
                _ => (&mut self.urgent, &mut self.others),
            };
            let next = first.pop_front().or_else(|| second.pop_front());
            self.computing = next.map(|operation| (self.now + OPERATION, operation));
        }
    }

    /// Returns a number between 0 and 1 (xorshift64*).
    fn random(&mut self) -> f64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn of(&self, label: &str) -> &Seen {
        &self.seen[label]
    }

    fn done(&self) -> usize {
        self.seen.values().map(|seen| seen.waits.len()).sum()
    }
}

impl Seen {
    fn p99(&self) -> Duration {
        let mut waits = self.waits.clone();
        waits.sort_unstable();
        waits[waits.len() * 99 / 100]
    }
}

fn key(label: &str, network: u64) -> u64 {
    let seed = label.bytes().fold(network + 1, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

const RETURNING: Population = Population { label: "returning", load: 0.5, networks: 500 };
const STRANGERS: Population = Population { label: "strangers", load: 1.5, networks: 5000 };
const ATTACKERS: Population = Population { label: "attackers", load: 2.0, networks: 1 };

#[test]
fn no_handshake_is_refused_while_the_machine_keeps_up() {
    let mut machine = Simulation::new();
    machine.run(60, &[RETURNING, Population { load: 0.45, ..STRANGERS }]);
    assert!(machine.reasons.is_empty(), "{:?}", machine.reasons);
    machine.run(60, &[Population { load: 0.95, ..ATTACKERS }]);
    assert!(machine.reasons.is_empty(), "{:?}", machine.reasons);
}

#[test]
fn a_burst_that_will_be_done_in_time_is_worked_off() {
    let mut machine = Simulation::new();
    for network in 0..2000 {
        machine.arrive("burst", key("burst", network));
    }
    machine.run(5, &[]);
    assert_eq!((machine.reasons.len(), machine.of("burst").waits.len()), (0, 2000));
    for network in 0..4000 {
        machine.arrive("burst", key("burst", network));
    }
    assert!(machine.reasons.len() > 900, "not all of these can complete within the deadline");
    assert!(machine.reasons.iter().all(|reason| *reason == Refusal::Deadline));
}

#[test]
fn at_four_times_the_capacity_returning_clients_hardly_notice() {
    let mut machine = Simulation::new();
    machine.know(RETURNING);
    machine.run(20, &[RETURNING]);
    let unloaded = machine.of("returning").p99();
    machine.run(60, &[RETURNING, STRANGERS, ATTACKERS]);
    let returning = machine.of("returning");
    assert!(returning.p99() <= unloaded * 2, "{:?} instead of {unloaded:?}", returning.p99());
    assert!(returning.refused * 100 <= returning.arrived, "{} of {}", returning.refused, returning.arrived);
    assert!(machine.done() as f64 >= 0.98 * 60_000.0, "goodput: {} of 60000", machine.done());
    let (strangers, attackers) = (machine.of("strangers"), machine.of("attackers"));
    assert!(strangers.p99() < DEADLINE / 2, "{:?}", strangers.p99());
    assert!(attackers.waits.len() * 10 < strangers.waits.len(), "one network among thousands");
    assert!(machine.reasons.contains(&Refusal::ClientShare) && machine.reasons.contains(&Refusal::Overload));
}

/// Otherwise the clients that arrive in the first moments of a flood would count as known when they return.
#[test]
fn clients_seen_first_when_the_flood_began_are_not_known() {
    let mut machine = Simulation::new();
    machine.know(RETURNING);
    machine.run(5, &[RETURNING]);
    machine.run(1, &[RETURNING, STRANGERS, ATTACKERS]);
    assert!(machine.controller.is_overloaded(machine.now));
    let mut first = |population: Population| {
        let now = machine.now;
        (0..population.networks)
            .filter(|network| machine.controller.goes_first(key(population.label, *network), now))
            .count()
    };
    assert_eq!((first(RETURNING), first(STRANGERS)), (500, 0));
}

#[test]
fn two_seconds_later_all_is_as_before() {
    let mut machine = Simulation::new();
    machine.know(RETURNING);
    machine.run(20, &[RETURNING, STRANGERS, ATTACKERS]);
    machine.run(2, &[RETURNING]);
    machine.reasons.clear();
    machine
        .run(20, &[RETURNING, Population { load: 0.3, ..STRANGERS }, Population { load: 0.1, ..ATTACKERS }]);
    assert!(machine.reasons.is_empty(), "{:?}", machine.reasons);
    assert!(!machine.controller.is_overloaded(machine.now));
}

#[test]
fn without_others_one_network_has_the_whole_machine() {
    let mut machine = Simulation::new();
    machine.run(20, &[ATTACKERS]);
    assert!(machine.done() as f64 >= 0.98 * 20_000.0, "{}", machine.done());
}

#[test]
fn networks_with_more_demand_share_unused_capacity() {
    let [one, other] = ["one", "other"].map(|label| Population { label, load: 1.0, networks: 1 });
    let small = Population { label: "small", load: 0.2, networks: 50 };
    let mut machine = Simulation::new();
    machine.run(5, &[one, other].map(|known| Population { load: 0.3, ..known }));
    machine.run(5, &[one, other, small]);
    machine.run(30, &[Population { load: 3.0, ..one }, other, small]);
    let served = ["one", "other", "small"].map(|label| machine.of(label).waits.len() as f64 / 30_000.0);
    assert!(served[2] > 0.19, "{served:?}");
    assert!(served[1] > 0.3 && served[0] < 0.5 && served.iter().sum::<f64>() > 0.97, "{served:?}");
}

#[test]
fn a_few_dozen_clients_of_a_slow_key_are_served_and_hundreds_are_not() {
    const SLOW: KeyType = KeyType::Rsa { bits: 4096 };
    const EACH: Duration = Duration::from_millis(15);
    let refused = |clients: usize| {
        let mut controller = Controller::new(1, 1);
        controller.computed(SLOW, 1, EACH, false, Duration::ZERO);
        let (mut queue, mut refused) = (VecDeque::new(), 0);
        for turn in 0..400 {
            let now = Duration::from_secs(10) + EACH * turn;
            for client in queue.len()..clients {
                let client = client as u64;
                let work = Work::Queued(SLOW);
                let age = Duration::ZERO;
                let arrival = Arrival { client, name: 1, event_loop: 0, age, deadline: DEADLINE * 4, work };
                match controller.arrive(&arrival, now) {
                    Ok(_) => queue.push_back(controller.enter(SLOW, false, now)),
                    Err(_) => refused += 1,
                }
            }
            if let Some(done) = queue.pop_front() {
                controller.leave(done, now + EACH);
                controller.computed(SLOW, 1, EACH, false, now + EACH);
            }
        }
        refused
    };
    assert_eq!(refused(32), 0);
    assert!(refused(400) > 0);
}
