//! Exponential backoff.

use std::time::Duration;

/// Exponential backoff with an upper bound.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    most: Duration,
    next: Duration,
}

impl Backoff {
    /// Backoff between attempts to connect to a control plane: Envoy's defaults.
    pub const CONNECTIONS: Self = Self::new(Duration::from_millis(500), Duration::from_secs(30));

    /// Backoff before a NACK that follows another: a control plane may resend a rejected resource as soon as it
    /// receives the NACK, indefinitely.
    pub const NACKS: Self = Self::new(Duration::from_millis(100), Duration::from_secs(3));

    /// Creates a backoff from `first` to `most`.
    pub const fn new(first: Duration, most: Duration) -> Self {
        Self { first, most, next: first }
    }

    /// Returns the next wait: a random fraction of its bound, so that gateways that lost the same control plane do
    /// not reconnect simultaneously. `random` is uniformly distributed from 0 to 1.
    pub fn wait(&mut self, random: f64) -> Duration {
        let bound = self.next;
        self.next = (bound * 2).min(self.most);
        bound.mul_f64(random.clamp(0.0, 1.0))
    }

    /// Resets the backoff after a success.
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
