//! How many wrong passwords a network of clients may say.

use crate::http::rate_limit::{Table, network};
use governor::{nanos::Nanos, state::StateStore};
use quadrille_config::model::Rate;
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// How many wrong passwords each network of clients has left. They come back evenly, as those of a rate limit do; what
/// turns out to be right is given back.
pub(super) struct Guesses {
    /// When each network has all of them back.
    due: Table,
    /// Nobody else can say which networks share a place in the table.
    hasher: RandomState,
    period: u64,
    burst: u64,
    began: Instant,
}

/// What was taken.
pub(super) struct Guess(u64);

/// Networks that are told apart.
const NETWORKS: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 12) - 1);
/// Bits of an address that tell networks apart.
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

    /// Takes one of a client's.
    ///
    /// # Errors
    /// Says how long it has none.
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

    /// It was none.
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
    fn who_guesses_waits_and_who_knows_does_not() {
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
