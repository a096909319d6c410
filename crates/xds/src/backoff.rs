//! How long to wait before the next attempt.

use std::time::Duration;

/// Waits that double, up to a bound.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Between attempts to reach a control plane: Envoy's defaults.
    pub const CONNECTIONS: Self = Self::new(Duration::from_millis(500), Duration::from_secs(30));

    /// Before a NACK that follows another: a server may send what was refused again as soon as it hears of it, for
    /// ever.
    pub const NACKS: Self = Self::new(Duration::from_millis(100), Duration::from_secs(3));

    /// Waits from `first` to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first }
    }

    /// The next wait: a random part of its bound, so that gateways that lost the same server do not come back together.
    /// `random` is evenly drawn from 0 to 1.
    pub fn wait(&mut self, random: f64) -> Duration {
        let bound = self.next;
        self.next = (bound * 2).min(self.most);
        bound.mul_f64(random.clamp(0.0, 1.0))
    }

    /// After a success.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_half_a_minute_and_start_anew_after_a_success() {
        let mut backoff = Backoff::CONNECTIONS;
        let waits: Vec<u128> = (0..9).map(|_| backoff.wait(1.0).as_millis()).collect();
        assert_eq!(waits, [500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
        backoff.reset();
        assert_eq!(backoff.wait(0.5), Duration::from_millis(250));
    }

    #[test]
    fn a_wait_is_anything_between_nothing_and_its_bound() {
        let mut backoff = Backoff::CONNECTIONS;
        assert_eq!(backoff.wait(0.0), Duration::ZERO);
        assert_eq!(backoff.wait(7.0), Duration::from_secs(1));
    }
}
