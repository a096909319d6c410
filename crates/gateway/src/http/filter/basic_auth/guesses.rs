//! Limit on wrong passwords per client network.

use crate::http::rate_limit::{Table, network};
use governor::{nanos::Nanos, state::StateStore};
use quadrille_config::model::Rate;
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// Number of wrong passwords that each client network has left. It refills evenly, as in a rate limit. A password
/// that turns out to be right is not counted.
pub(super) struct Guesses {
    /// Time when the allowance of each network is full again.
    due: Table,
    /// Random keys: clients cannot predict which networks share a place in the table.
    hasher: RandomState,
    period: u64,
    burst: u64,
    began: Instant,
}

/// One attempt that was taken from the allowance.
pub(super) struct Guess(u64);

/// Number of networks with separate counts.
const NETWORKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 12) - 1);
/// Prefix lengths of a network, in IPv4 and IPv6.
const PREFIXES: (u8, u8) = (24, 56);

impl Guesses {
    pub(super) fn new(rate: Rate) -> Self {
        let period = u64::try_from(rate.period().as_nanos()).unwrap_or(u64::MAX).max(1);
        Self {
            due: Table::new(NETWORKS),
            hasher: RandomState::new(),
            period,
            burst: period.saturating_mul(rate.requests.get().into()),
            began: Instant::now(),
        }
    }

    /// Takes one attempt from the allowance of a client.
    ///
    /// # Errors
    /// Returns the time until the next attempt is allowed.
    pub(super) fn take(&self, client: IpAddr, now: Instant) -> Result<Guess, Duration> {
        let key = self.hasher.hash_one(network(client, PREFIXES.0, PREFIXES.1));
        let now = u64::try_from(now.saturating_duration_since(self.began).as_nanos()).unwrap_or(u64::MAX);
        self.due.measure_and_replace(&key, |before| {
            let due = before.map_or(now, |before| before.as_u64().max(now)).saturating_add(self.period);
            match due.saturating_sub(now).saturating_sub(self.burst) {
                0 => Ok((Guess(key), Nanos::new(due))),
                wait => Err(Duration::from_nanos(wait)),
            }
        })
    }

    /// Returns an attempt whose password was right.
    pub(super) fn give_back(&self, guess: Guess) {
        let given: Result<(), ()> = self.due.measure_and_replace(&guess.0, |before| {
            let due = before.map_or(0, Nanos::as_u64).saturating_sub(self.period);
            Ok(((), Nanos::new(due)))
        });
        let _ = given;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_passwords_are_limited_and_right_ones_are_not() {
        let guesses = Guesses::new(Rate::per_minute(3));
        let [one, neighbour, other] =
            ["192.0.2.1", "192.0.2.99", "192.0.3.1"].map(|text| text.parse().unwrap());
        let at = |seconds| guesses.began + Duration::from_secs(seconds);
        assert!([one, neighbour, one].into_iter().all(|client| guesses.take(client, at(1)).is_ok()));
        assert_eq!(guesses.take(one, at(1)).err(), Some(Duration::from_secs(20)));
        assert!(guesses.take(other, at(1)).is_ok(), "another network has its own");
        assert!(guesses.take(one, at(21)).is_ok() && guesses.take(one, at(21)).is_err());
        for _ in 0..100 {
            let Ok(guess) = guesses.take(other, at(22)) else { panic!("what was right was counted") };
            guesses.give_back(guess);
        }
    }
}
