//! Share of the load that overflows, in simulated time: threads that compute one operation after the other, and an
//! overflow that computes many at once. CPU is not scarce (see `scarce_cpu.rs`).

use quadrille_engine::overflow::pace::Pace;
use std::{collections::VecDeque, time::Duration};

/// All times in microseconds.
struct World {
    threads: usize,
    /// One operation on one thread.
    each: u64,
    lanes: usize,
    capacity: usize,
    /// Cost of an overflow batch: this, and `far_each` for each operation.
    far_base: f64,
    far_each: f64,
    pace: Pace,
    now: u64,
    queue: VecDeque<u64>,
    /// Times at which each thread is free again, and each overflow batch returns, with its size.
    busy: Vec<u64>,
    away: Vec<(u64, u64, usize)>,
    here: usize,
    there: usize,
    waits: Vec<u64>,
}

impl World {
    /// 16 cores that compute 6,667 operations a second each, 106,667 together; a GPU that computes a million.
    fn server() -> Self {
        Self {
            threads: 16,
            each: 150,
            lanes: 3,
            capacity: 10_000,
            far_base: 4_000.0,
            far_each: 1.0,
            pace: Pace::default(),
            now: 0,
            queue: VecDeque::new(),
            busy: Vec::new(),
            away: Vec::new(),
            here: 0,
            there: 0,
            waits: Vec::new(),
        }
    }

    /// Runs `rate` operations a second in bursts of `burst`, for `seconds`. Steps of 50 microseconds.
    fn run(&mut self, rate: f64, burst: usize, seconds: f64) {
        let end = self.now + (seconds * 1e6) as u64;
        let mut due = 0.0;
        while self.now < end {
            due += rate * 50e-6;
            while due >= burst as f64 {
                due -= burst as f64;
                self.queue.extend(std::iter::repeat_n(self.now, burst));
            }
            self.step();
            self.now += 50;
        }
    }

    fn step(&mut self) {
        let now = self.now;
        self.busy.retain(|&until| until > now);
        let (back, away): (Vec<_>, Vec<_>) = self.away.iter().partition(|batch| batch.1 <= now);
        self.away = away;
        for (sent, until, count) in back {
            let took = Duration::from_micros(until - sent);
            self.pace.overflowed(count, took, Duration::ZERO, self.capacity);
        }
        while self.busy.len() < self.threads
            && let Some(arrived) = self.queue.pop_front()
        {
            self.busy.push(now + self.each);
            self.waits.push(now + self.each - arrived);
            self.here += 1;
            let each = Duration::from_micros(self.each);
            self.pace.computed(1, each, each, self.threads);
        }
        while self.away.len() < self.lanes {
            let count = self.pace.share(self.queue.len(), self.capacity, 0.0);
            if count == 0 {
                break;
            }
            // Lanes share the device.
            let before: usize = self.away.iter().map(|batch| batch.2).sum();
            let took = (self.far_base + (before + count) as f64 * self.far_each) as u64;
            self.away.push((now, now + took, count));
            for arrived in self.queue.drain(self.queue.len() - count..) {
                self.waits.push(now + took - arrived);
            }
            self.there += count;
        }
    }

    fn p99(&mut self) -> Duration {
        self.waits.sort_unstable();
        Duration::from_micros(self.waits[self.waits.len() * 99 / 100])
    }
}

#[test]
fn what_the_cores_can_do_stays_with_them() {
    for (rate, burst) in [(100.0, 1), (5_000.0, 1), (50_000.0, 16), (85_000.0, 64), (50_000.0, 300)] {
        let mut world = World::server();
        world.run(rate, burst, 2.0);
        assert_eq!(world.there, 0, "{rate} a second in bursts of {burst}");
        assert!(world.p99() < Duration::from_millis(10), "{:?}", world.p99());
    }
}

#[test]
fn what_they_cannot_goes_and_they_go_on() {
    for rate in [150_000.0, 400_000.0, 700_000.0] {
        let mut world = World::server();
        world.run(rate, 50, 3.0);
        let done = (world.here + world.there) as f64 / (rate * 3.0);
        assert!(done > 0.98, "{rate} a second: {done} of all are done or away, {} wait", world.queue.len());
        assert!(world.here as f64 > 0.97 * 3.0 * 106_667.0, "the cores are busy: {}", world.here);
        let p99 = world.p99();
        println!("{rate} a second: {} here, {} there, p99 {p99:?}", world.here, world.there);
        assert!(p99 < Duration::from_millis(60), "{rate} a second: {p99:?}");
    }
}

/// Half of a million operations a second: the latency target.
#[test]
fn at_half_load_waits_are_short() {
    let mut world = World::server();
    world.run(500_000.0, 50, 3.0);
    assert!(world.p99() < Duration::from_millis(25), "{:?}", world.p99());
}

#[test]
fn when_the_load_falls_the_cores_have_it_back() {
    let mut world = World::server();
    world.run(400_000.0, 50, 1.0);
    assert!(world.there > 200_000);
    world.run(20_000.0, 4, 0.2);
    let there = world.there;
    world.run(20_000.0, 4, 1.0);
    assert_eq!(world.there, there, "no operation overflows any more");
    assert!(world.queue.is_empty());
}

#[test]
fn a_far_one_that_becomes_slow_gets_less() {
    let mut world = World::server();
    world.run(200_000.0, 50, 1.0);
    (world.far_base, world.far_each) = (40_000.0, 4.0);
    // It adapts to what it sends.
    world.run(90_000.0, 2_000, 2.0);
    let there = world.there;
    world.run(90_000.0, 2_000, 1.0);
    assert_eq!(world.there, there, "bursts of twenty milliseconds finish sooner locally");
}
