//! Policy between an idle machine and a full one: simulated handshakes, with event loops and compute threads that
//! share the CPUs, under the policy that never waits, with a delay of a millisecond, and with the default.

use quadrille_engine::{
    Arrivals, Batching, KeyType, Load, Policy,
    policy::{Decision, Waiting},
};
use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

const RSA: KeyType = KeyType::Rsa { bits: 2048 };
const MILLISECOND: Duration = Duration::from_millis(1);
/// CPU time of the event loop for a handshake before its signature, and after it.
const WORK: [Duration; 2] = [Duration::from_micros(120), Duration::from_micros(50)];
/// RSA-2048 in lanes of AVX-512 IFMA on a Zen 5.
const HALF_PASS: Duration = Duration::from_micros(250);
const PASS: Duration = Duration::from_micros(490);
const SIMULATED: Duration = Duration::from_millis(1_500);
/// Time until the estimates are settled.
const SETTLING: Duration = Duration::from_millis(300);

/// Cost of a handshake, in microseconds.
#[derive(Clone, Copy, Debug)]
struct Taken {
    cpu: f64,
    median: f64,
}

#[test]
fn from_half_load_on_it_costs_what_a_delay_costs_and_takes_as_long_as_none() {
    for cpus in [1, 4] {
        let full = WORK.iter().sum::<Duration>() + PASS / 8;
        for percent in [10, 30, 50, 70, 90, 97] {
            let rate = cpus as f64 / full.as_secs_f64() * f64::from(percent) / 100.0;
            let [none, delayed, ours] = [
                Policy { latency_budget: Duration::ZERO, ..Policy::default() },
                Policy { poll_delay: MILLISECOND, ..Policy::default() },
                Policy::default(),
            ]
            .map(|policy| Machine::new(policy, cpus).run(rate));
            println!("{cpus} CPUs, {percent} %: none {none:.0?}, 1 ms {delayed:.0?}, default {ours:.0?}");
            let [soonest, least] = [none.median.min(delayed.median), none.cpu.min(delayed.cpu)];
            // The savings of a delay at low load require a delay.
            let [longest, most] = match percent {
                10 => [soonest, none.cpu],
                30 => [1.2 * soonest, 1.35 * least],
                _ => [1.1 * soonest, 1.1 * least],
            };
            assert!(ours.median <= longest && ours.cpu <= most, "{cpus} CPUs, {percent} %: {ours:?}");
        }
    }
}

/// Thread that needs a CPU: remaining time, and its handshakes.
struct Running {
    left: Duration,
    handshakes: Vec<Handshake>,
}

#[derive(Clone, Copy)]
struct Handshake {
    began: Instant,
    signed: bool,
    event_loop: usize,
}

struct Machine {
    policy: Policy,
    now: Instant,
    ready: Vec<VecDeque<Handshake>>,
    event_loops: Vec<Option<Running>>,
    compute: Vec<Option<Running>>,
    queue: VecDeque<(Instant, Handshake)>,
    load: Load,
    arrivals: Arrivals,
    used: Duration,
    latencies: Vec<Duration>,
    done: u32,
}

impl Machine {
    fn new(policy: Policy, cpus: usize) -> Self {
        let now = Instant::now();
        Self {
            policy,
            now,
            ready: vec![VecDeque::new(); cpus],
            event_loops: (0..cpus).map(|_| None).collect(),
            compute: (0..cpus).map(|_| None).collect(),
            queue: VecDeque::new(),
            load: Load::new(cpus, now, Duration::ZERO),
            arrivals: Arrivals::new(now),
            used: Duration::ZERO,
            latencies: Vec::new(),
            done: 0,
        }
    }

    fn run(mut self, rate: f64) -> Taken {
        let (start, mut seed) = (self.now, 0x9e37_79b9_7f4a_7c15_u64);
        let mut next = start;
        for event_loop in (0..self.ready.len()).cycle() {
            self.run_until(next, start + SETTLING);
            if next > start + SIMULATED {
                break;
            }
            self.ready[event_loop].push_back(Handshake { began: next, signed: false, event_loop });
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let uniform = ((seed >> 11) as f64 + 1.0) / (1_u64 << 53) as f64;
            next += Duration::from_secs_f64(-uniform.ln() / rate);
        }
        self.latencies.sort();
        let median = self.latencies[self.latencies.len() / 2];
        Taken {
            cpu: self.used.as_secs_f64() * 1e6 / f64::from(self.done),
            median: median.as_secs_f64() * 1e6,
        }
    }

    /// Advances the time; all running threads share the CPUs evenly.
    fn run_until(&mut self, end: Instant, settled: Instant) {
        loop {
            let used = self.used;
            self.load.observe(self.now, || used);
            self.start_event_loops();
            let wake = self.start_compute();
            let cpus = self.compute.len();
            let wanting = self.event_loops.iter().chain(&self.compute).flatten().count();
            let share = (cpus as f64 / wanting.max(1) as f64).min(1.0);
            let running = self.event_loops.iter().chain(&self.compute).flatten();
            let finish = running.map(|one| self.now + one.left.div_f64(share)).min();
            let until = finish.into_iter().chain(wake).chain([end]).min().unwrap_or(end).max(self.now);
            let each = (until - self.now).mul_f64(share);
            self.used += each * wanting as u32;
            self.now = until;
            self.advance(each, settled);
            if until >= end {
                return;
            }
        }
    }

    fn start_event_loops(&mut self) {
        for (running, ready) in self.event_loops.iter_mut().zip(&mut self.ready) {
            if running.is_none()
                && let Some(handshake) = ready.pop_front()
            {
                let left = WORK[usize::from(handshake.signed)];
                *running = Some(Running { left, handshakes: vec![handshake] });
            }
        }
    }

    /// Returns the next wake-up time of a compute thread.
    fn start_compute(&mut self) -> Option<Instant> {
        while let Some(free) = self.compute.iter().position(Option::is_none) {
            let batching = Batching { width: 8, half: 4, crossover: 1, most: usize::MAX, price: HALF_PASS };
            let interval = self.arrivals.interval(self.now);
            let waiting = self.queue.front().map(|&(oldest, _)| Waiting {
                key_type: RSA,
                count: self.queue.len(),
                oldest,
                oldest_by_policy: Some(oldest),
                deadline: None,
                interval,
                batching,
            });
            let threads = self.compute.iter().filter(|one| one.is_none()).count();
            let threads = NonZeroUsize::new(threads).unwrap_or(NonZeroUsize::MIN);
            match self.policy.decide(self.now, waiting.into_iter(), threads, self.load.scarcity()) {
                Decision::Take { count, .. } => {
                    let handshakes = self.queue.drain(..count).map(|(_, handshake)| handshake).collect();
                    let left = if count <= 4 { HALF_PASS } else { PASS };
                    self.compute[free] = Some(Running { left, handshakes });
                }
                Decision::WaitUntil(due) => return Some(due),
                Decision::Sleep => return None,
            }
        }
        None
    }

    fn advance(&mut self, each: Duration, settled: Instant) {
        /// Tolerance for rounding errors of a few nanoseconds.
        const NOTHING: Duration = Duration::from_nanos(100);
        let over = |running: &mut Option<Running>| {
            let one = running.as_mut()?;
            one.left = one.left.saturating_sub(each);
            if one.left <= NOTHING { running.take() } else { None }
        };
        for signed in self.compute.iter_mut().filter_map(over).flat_map(|batch| batch.handshakes) {
            self.ready[signed.event_loop].push_back(Handshake { signed: true, ..signed });
        }
        for handshake in self.event_loops.iter_mut().filter_map(over).flat_map(|one| one.handshakes) {
            if handshake.signed {
                self.done += 1;
                if handshake.began > settled {
                    self.latencies.push(self.now - handshake.began);
                }
            } else {
                self.arrivals.arrived(self.now);
                self.queue.push_back((self.now, handshake));
            }
        }
    }
}
