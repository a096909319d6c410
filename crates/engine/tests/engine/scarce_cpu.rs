//! Overflow with scarce CPU, in simulated time: event loops, compute threads and the overflow's threads share the CPUs,
//! and clients wait for their handshakes before they begin others.

use quadrille_engine::{
    Arrivals, Batching, KeyType, Load, Policy,
    overflow::pace::Pace,
    policy::{Decision, Waiting},
};
use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// Microseconds. A step of the simulation.
const STEP: f64 = 10.0;
const CPUS: usize = 4;
/// CPU time of an event loop for a handshake before its signature, and after it: as measured on a Xeon beside an H100
/// (docs/kernels/cuda.md), like the other costs.
const WORK: [f64; 2] = [110.0, 46.0];
const WIDTH: usize = 8;
/// CPU time of a pass of the lanes; one of up to half the width costs half.
const PASS: f64 = 8.0 * 160.0;
/// CPU time of a thread of the overflow for a batch, and for each operation.
const FAR_CPU: [f64; 2] = [80.0, 12.0];
const CAPACITY: usize = 10_000;
const FAR_LANES: usize = 12;

/// Handshake: when it began, and whether its signature is made.
type Handshake = (f64, bool);

/// Thread that needs a CPU: remaining time, beginning, CPU time in all, and handshakes.
struct Running {
    left: f64,
    began: f64,
    cpu: f64,
    handshakes: Vec<Handshake>,
}

#[derive(Clone, Copy, PartialEq)]
enum Rule {
    /// Lanes alone.
    Alone,
    /// The overflow gets only what waits longer locally.
    ByQueue,
    /// The default.
    ByScarcity,
}

struct Machine {
    rule: Rule,
    threads: usize,
    /// Time of a batch on the device.
    far: f64,
    now: f64,
    start: Instant,
    load: Load,
    arrivals: Arrivals,
    used: f64,
    pace: Pace,
    ready: VecDeque<Handshake>,
    queue: VecDeque<(f64, Handshake)>,
    event_loops: Vec<Running>,
    compute: Vec<Running>,
    packing: Vec<Running>,
    /// Batches on the device, with the time of their return.
    away: Vec<(f64, Running)>,
    by_far: usize,
    latencies: Vec<f64>,
}

impl Machine {
    fn new(rule: Rule, threads: usize, far: f64) -> Self {
        let start = Instant::now();
        let (now, used, by_far) = Default::default();
        let (ready, queue) = Default::default();
        let (event_loops, compute, packing, away, latencies) = Default::default();
        let (load, arrivals) = (Load::new(CPUS, start, Duration::ZERO), Arrivals::new(start));
        let pace = Pace::default();
        Self {
            rule,
            threads,
            far,
            now,
            start,
            load,
            arrivals,
            used,
            pace,
            ready,
            queue,
            event_loops,
            compute,
            packing,
            away,
            by_far,
            latencies,
        }
    }

    /// Runs `clients` that begin a handshake when the last one is done, for some simulated seconds. Returns handshakes
    /// per second, and the share of the overflow, after half of the time.
    fn closed(mut self, clients: usize, seconds: f64) -> (f64, f64) {
        self.ready.extend((0..clients).map(|_| (0.0, false)));
        self.run(seconds / 2.0, |machine| machine.ready.push_back((machine.now, false)));
        (self.by_far, self.latencies) = (0, Vec::new());
        self.run(seconds / 2.0, |machine| machine.ready.push_back((machine.now, false)));
        let done = self.latencies.len() as f64;
        (done / (seconds / 2.0), self.by_far as f64 / done)
    }

    /// Runs `rate` new handshakes a second. Returns the rate of those done, the share of the overflow and the median
    /// latency in microseconds.
    fn open(mut self, rate: f64, seconds: f64) -> (f64, f64, f64) {
        let end = seconds * 1e6;
        let mut next = 0.0;
        while self.now < end {
            while next <= self.now {
                self.ready.push_back((next, false));
                next += 1e6 / rate;
            }
            self.run(STEP / 1e6, |_| ());
        }
        self.latencies.sort_unstable_by(f64::total_cmp);
        let done = self.latencies.len();
        (done as f64 / seconds, self.by_far as f64 / done as f64, self.latencies[done / 2])
    }

    fn run(&mut self, seconds: f64, done: impl Fn(&mut Self)) {
        let end = self.now + seconds * 1e6 - STEP / 2.0;
        while self.now < end {
            let used = micros(self.used);
            self.load.observe(self.start + micros(self.now), || used);
            self.begin();
            self.step(&done);
        }
    }

    /// Scarcity as the pace sees it.
    fn scarcity(&self) -> f64 {
        if self.rule == Rule::ByScarcity { self.load.scarcity() } else { 0.0 }
    }

    fn begin(&mut self) {
        while self.event_loops.len() < CPUS
            && let Some(handshake) = self.ready.pop_front()
        {
            let work = WORK[usize::from(handshake.1)];
            self.event_loops.push(Running::new(self.now, work, vec![handshake]));
        }
        if self.rule != Rule::Alone {
            while self.packing.len() + self.away.len() < FAR_LANES {
                let count = self.pace.share(self.queue.len(), CAPACITY, self.scarcity());
                if count == 0 {
                    break;
                }
                let batch = self.queue.split_off(self.queue.len() - count);
                let batch: Vec<_> = batch.into_iter().map(|(_, handshake)| handshake).collect();
                let cpu = FAR_CPU[0] + FAR_CPU[1] * batch.len() as f64;
                self.packing.push(Running::new(self.now, cpu, batch));
            }
        }
        while self.compute.len() < self.threads
            && let Some(count) = self.taken()
        {
            let batch = self.queue.drain(..count).map(|(_, handshake)| handshake).collect();
            let cpu = if count <= WIDTH / 2 { PASS / 2.0 } else { PASS };
            self.compute.push(Running::new(self.now, cpu, batch));
        }
    }

    /// Returns how many operations a free compute thread takes now, as the engine decides.
    fn taken(&self) -> Option<usize> {
        let hold = match self.rule {
            Rule::Alone => None,
            _ => self.pace.hold(CAPACITY, self.scarcity()),
        };
        let (oldest, _) = self.queue.front()?;
        if hold.is_some_and(|hold| oldest + hold.as_secs_f64() * 1e6 > self.now) {
            return None;
        }
        let (now, oldest) = (self.start + micros(self.now), self.start + micros(*oldest));
        let price = micros(PASS / 2.0);
        let waiting = Waiting {
            key_type: KeyType::Rsa { bits: 2048 },
            count: self.queue.len(),
            oldest,
            oldest_by_policy: Some(oldest),
            deadline: None,
            interval: self.arrivals.interval(now),
            batching: Batching { width: WIDTH, half: WIDTH / 2, crossover: 1, most: usize::MAX, price },
        };
        let free = NonZeroUsize::new(self.threads - self.compute.len())?;
        match Policy::default().decide(now, [waiting].into_iter(), free, self.load.scarcity()) {
            Decision::Take { count, .. } => Some(count),
            _ => None,
        }
    }

    /// Advances the time; all running threads share the CPUs evenly.
    fn step(&mut self, done: &impl Fn(&mut Self)) {
        let wanting = self.event_loops.len() + self.compute.len() + self.packing.len();
        let each = STEP * (CPUS as f64 / wanting.max(1) as f64).min(1.0);
        self.now += STEP;
        self.used += each * wanting as f64;
        let now = self.now;
        for one in finished(&mut self.event_loops, each) {
            for (began, signed) in one.handshakes {
                if signed {
                    self.latencies.push(now - began);
                    done(self);
                } else {
                    self.arrivals.arrived(self.start + micros(now));
                    self.queue.push_back((now, (began, signed)));
                }
            }
        }
        for one in finished(&mut self.compute, each) {
            let count = one.handshakes.len();
            self.pace.computed(count, micros(now - one.began), micros(one.cpu), self.threads);
            self.ready.extend(one.handshakes.iter().map(|(began, _)| (*began, true)));
        }
        for one in finished(&mut self.packing, each) {
            self.away.push((now + self.far, one));
        }
        for (_, one) in self.away.extract_if(.., |(until, _)| *until <= now) {
            let count = one.handshakes.len();
            self.pace.overflowed(count, micros(now - one.began), micros(one.cpu), CAPACITY);
            self.by_far += count;
            self.ready.extend(one.handshakes.iter().map(|(began, _)| (*began, true)));
        }
    }
}

impl Running {
    fn new(began: f64, cpu: f64, handshakes: Vec<Handshake>) -> Self {
        Self { left: cpu, began, cpu, handshakes }
    }
}

/// Gives each thread `each` of CPU time, and removes those that are done.
fn finished(running: &mut Vec<Running>, each: f64) -> Vec<Running> {
    running.iter_mut().for_each(|one| one.left -= each);
    running.extract_if(.., |one| one.left <= 0.0).collect()
}

fn micros(micros: f64) -> Duration {
    Duration::from_secs_f64(micros / 1e6)
}

const CLIENTS: usize = 1_000;
const GPU: f64 = 6_500.0;

/// Reproduces the figures of a device: by the queue alone, four compute threads leave hardly anything to the overflow,
/// and one set by hand leaves more. With the default, no thread has to be set.
#[test]
fn scarce_cpu_goes_to_handshakes_and_operations_to_the_overflow() {
    let (alone, _) = Machine::new(Rule::Alone, CPUS, GPU).closed(CLIENTS, 1.0);
    let by_queue = Machine::new(Rule::ByQueue, CPUS, GPU).closed(CLIENTS, 1.0);
    let by_hand = Machine::new(Rule::ByQueue, 1, GPU).closed(CLIENTS, 1.0);
    let ours = Machine::new(Rule::ByScarcity, CPUS, GPU).closed(CLIENTS, 1.0);
    println!("alone {alone:.0}/s, by queue {by_queue:.2?}, one thread {by_hand:.2?}, default {ours:.2?}");
    assert!(by_queue.0 < 1.15 * alone, "{by_queue:?}");
    assert!(ours.0 > 1.4 * alone && ours.0 > by_hand.0, "{ours:?}");
    assert!(ours.1 > 0.9, "{ours:?}");
}

#[test]
fn nothing_goes_while_cpu_is_plentiful() {
    let capacity = CPUS as f64 * 1e6 / (WORK.iter().sum::<f64>() + PASS / WIDTH as f64);
    for percent in [10.0, 30.0, 50.0, 70.0] {
        let (rate, far, median) =
            Machine::new(Rule::ByScarcity, CPUS, GPU).open(capacity * percent / 100.0, 1.0);
        println!("{percent} %: {rate:.0}/s, {far:.3} at the overflow, median {median:.0} us");
        assert!(far < 0.001, "{percent} %: {far}");
    }
}

/// More than the lanes can do, and less than the CPUs can do with the overflow: no queue grows, and latency is bounded.
#[test]
fn a_load_above_the_capacity_of_the_lanes_is_served() {
    let (alone, _) = Machine::new(Rule::Alone, CPUS, GPU).closed(CLIENTS, 1.0);
    for times in [0.85, 1.0, 1.2, 1.4] {
        let (rate, far, median) = Machine::new(Rule::ByScarcity, CPUS, GPU).open(alone * times, 2.0);
        println!(
            "{times} of the lanes' capacity: {rate:.0}/s, {far:.2} at the overflow, median {median:.0} us"
        );
        assert!(rate > 0.97 * alone * times, "{times}: {rate}");
        assert!(median < 30_000.0, "{times}: {median}");
    }
}

/// A device that takes half a second for a batch costs little.
#[test]
fn a_slow_overflow_is_not_waited_for() {
    let (alone, _) = Machine::new(Rule::Alone, CPUS, GPU).closed(CLIENTS, 2.0);
    let (ours, far) = Machine::new(Rule::ByScarcity, CPUS, 500_000.0).closed(CLIENTS, 8.0);
    println!("alone {alone:.0}/s, with a slow overflow {ours:.0}/s, {far:.3} there");
    assert!(ours > 0.9 * alone, "{ours} of {alone}");
}
