//! CPU scarcity and arrival rate over the last few tens of milliseconds. Time is an argument.

use std::time::{Duration, Instant};

/// Events within one window count as one observation.
const WINDOW: Duration = Duration::from_millis(10);
/// Weight of earlier observations after a window.
const REMEMBERED: f64 = 0.75;
/// Weight of a pass that could have been saved against the wait that saves it. With 3, simulated handshakes on one
/// and on four CPUs are, from half load on, within a tenth of the better of no delay and one of 1 ms, both in CPU and
/// in median latency (tests/engine/half_load.rs); with 2 they take less time and more CPU at half load, with 4 less
/// CPU and more time.
const WEIGHT: f64 = 3.0;
/// Upper limit of the utilisation that is assumed.
const BUSIEST: f64 = 0.98;

/// Utilisation of the CPUs that this process may use.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    cpus: f64,
    since: Instant,
    used_before: Duration,
    busy: f64,
}

impl Load {
    /// Creates the load of a process that may use `cpus` CPUs, and has used `used` of their time until `now`.
    pub fn new(cpus: usize, now: Instant, used: Duration) -> Self {
        Self { cpus: cpus.max(1) as f64, since: now, used_before: used, busy: 0.0 }
    }

    /// Calls `used` for the CPU time that the process has used until `now`, if the last value is old enough.
    pub fn observe(&mut self, now: Instant, used: impl FnOnce() -> Duration) {
        let passed = now.saturating_duration_since(self.since);
        if passed < WINDOW {
            return;
        }
        let used = used();
        let spent = used.saturating_sub(self.used_before).as_secs_f64();
        let busy = (spent / passed.as_secs_f64() / self.cpus).min(1.0);
        self.busy = blend(self.busy, busy, passed);
        (self.since, self.used_before) = (now, used);
    }

    /// Returns the total delay to other operations per second of CPU that could have been saved, in seconds: on a
    /// machine with utilisation u, u / (1 - u) (the Pollaczek-Khinchine formula), times a weight.
    pub fn scarcity(&self) -> f64 {
        let busy = self.busy.min(BUSIEST);
        WEIGHT * busy / (1.0 - busy)
    }
}

/// Arrival rate.
#[derive(Clone, Copy, Debug)]
pub struct Arrivals {
    since: Instant,
    count: u32,
    per_second: f64,
}

impl Arrivals {
    /// Creates a rate without arrivals.
    pub fn new(now: Instant) -> Self {
        Self { since: now, count: 0, per_second: 0.0 }
    }

    /// Records an arrival.
    pub fn arrived(&mut self, now: Instant) {
        if now.saturating_duration_since(self.since) >= WINDOW {
            *self = Self { since: now, count: 0, per_second: self.per_second(now) };
        }
        self.count += 1;
    }

    /// Average time between two arrivals; `None` if there were hardly any.
    pub fn interval(&self, now: Instant) -> Option<Duration> {
        Duration::try_from_secs_f64(self.per_second(now).recip()).ok()
    }

    fn per_second(&self, now: Instant) -> f64 {
        let passed = now.saturating_duration_since(self.since);
        if passed < WINDOW {
            return self.per_second;
        }
        blend(self.per_second, f64::from(self.count) / passed.as_secs_f64(), passed)
    }
}

fn blend(known: f64, new: f64, passed: Duration) -> f64 {
    let remembered = REMEMBERED.powf(passed.as_secs_f64() / WINDOW.as_secs_f64());
    known * remembered + new * (1.0 - remembered)
}

#[cfg(test)]
mod tests {
    use super::{Arrivals, Load};
    use std::time::{Duration, Instant};

    const STEP: Duration = Duration::from_millis(10);

    /// Returns the scarcity after half a second in which every step of 10 ms used `each` of CPU time.
    fn scarcity(cpus: usize, each: Duration) -> f64 {
        let start = Instant::now();
        let mut load = Load::new(cpus, start, Duration::ZERO);
        for step in 1..=50 {
            load.observe(start + STEP * step, || each * step);
        }
        load.scarcity()
    }

    #[test]
    fn cpu_is_scarce_once_little_is_left() {
        assert_eq!(scarcity(1, Duration::ZERO), 0.0);
        assert!((2.9..=3.1).contains(&scarcity(1, STEP / 2)), "half of one CPU");
        assert!(scarcity(4, STEP / 2) < 0.5, "an eighth of four");
        assert!(scarcity(1, STEP) > 90.0);
        assert!(scarcity(1, STEP * 3).is_finite(), "more CPU time than wall time");
    }

    #[test]
    fn the_clock_is_not_read_more_often_than_needed() {
        let start = Instant::now();
        let mut load = Load::new(1, start, Duration::ZERO);
        load.observe(start + STEP / 2, || panic!("too soon"));
        load.observe(start, || panic!("too soon"));
    }

    #[test]
    fn the_interval_is_that_of_the_last_arrivals() {
        let start = Instant::now();
        let mut arrivals = Arrivals::new(start);
        assert_eq!(arrivals.interval(start), None);
        let micros = |n: u32| start + Duration::from_micros(500) * n;
        (0..1_000).for_each(|n| arrivals.arrived(micros(n)));
        let interval = arrivals.interval(micros(1_000)).expect("the interval is known").as_micros();
        assert!((480..=520).contains(&interval), "{interval}");
        let later = arrivals.interval(micros(1_000) + STEP * 20).expect("the interval is known");
        assert!(later > Duration::from_millis(5), "no arrivals for a fifth of a second: {later:?}");
        let much_later = arrivals.interval(micros(1_000) + Duration::from_secs(3_600));
        assert!(much_later.is_none_or(|interval| interval > Duration::from_secs(1)), "{much_later:?}");
    }
}
