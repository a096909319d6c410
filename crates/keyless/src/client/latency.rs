//! Latency statistics: the quantile past which a second request pays.

use std::time::Duration;

/// Steps of a factor of the fourth root of two, from 16 us: accurate to 20 % up to 16 s.
const BUCKETS: usize = 80;
const FIRST_US: f64 = 16.0;
const STEPS_PER_OCTAVE: f64 = 4.0;
/// Number of measurements after which old ones count half.
const HALF_LIFE: u32 = 2000;

/// Histogram with decay.
#[derive(Clone, Debug)]
pub(super) struct Latencies {
    counts: [u32; BUCKETS],
    total: u32,
}

impl Default for Latencies {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], total: 0 }
    }
}

impl Latencies {
    pub(super) fn record(&mut self, latency: Duration) {
        self.counts[bucket(latency)] += 1;
        self.total += 1;
        if self.total >= HALF_LIFE {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.total = self.counts.iter().sum();
        }
    }

    /// Latency below which this share of the measurements stayed; `None` while there are too few.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        const ENOUGH: u32 = 100;
        if self.total < ENOUGH {
            return None;
        }
        let rank = (f64::from(self.total) * share).ceil() as u32;
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += count;
            seen >= rank
        };
        let index = self.counts.iter().position(reached)?;
        let upper = FIRST_US * (((index + 1) as f64) / STEPS_PER_OCTAVE).exp2();
        Some(Duration::from_secs_f64(upper * 1e-6))
    }
}

fn bucket(latency: Duration) -> usize {
    let steps = (latency.as_secs_f64() * 1e6 / FIRST_US).log2() * STEPS_PER_OCTAVE;
    // Negative values and NaN become zero.
    (steps as usize).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::Latencies;
    use std::time::Duration;

    #[test]
    fn the_slowest_in_a_hundred() {
        let mut latencies = Latencies::default();
        assert_eq!(latencies.quantile(0.99), None);
        for index in 0..1000 {
            latencies.record(Duration::from_micros(if index % 100 < 98 { 1000 } else { 50_000 }));
        }
        let (p50, p99) = (latencies.quantile(0.5).unwrap(), latencies.quantile(0.99).unwrap());
        assert!(p50 >= Duration::from_micros(1000) && p50 < Duration::from_micros(1300), "{p50:?}");
        assert!(p99 >= Duration::from_millis(50) && p99 < Duration::from_millis(65), "{p99:?}");
        for _ in 0..20_000 {
            latencies.record(Duration::from_micros(200));
        }
        assert!(latencies.quantile(0.99).unwrap() < Duration::from_micros(300), "no decay");
    }

    #[test]
    fn extremes_have_a_place() {
        let mut latencies = Latencies::default();
        for _ in 0..100 {
            latencies.record(Duration::ZERO);
            latencies.record(Duration::from_secs(1_000_000));
        }
        assert!(latencies.quantile(0.0).is_some() && latencies.quantile(1.0).is_some());
    }
}
