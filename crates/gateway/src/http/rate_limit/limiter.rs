//! A rate limit with its remaining allowances.

use super::table::Table;
use crate::{fraction::is_one_of, http::request::Request, telemetry::metrics};
use ::metrics::Counter;
use governor::{Quota, RateLimiter, clock::Clock, middleware::NoOpMiddleware};
use quadrille_config::model::{RateLimit, RateLimitAnswer, RateLimitBy, RateLimited};
use std::{
    hash::{BuildHasher, RandomState},
    net::IpAddr,
    num::NonZeroUsize,
    time::{Duration, Instant},
};

/// A rate limit with its remaining allowance per key.
pub(crate) struct Limiter<C: Clock = Elapsed> {
    model: RateLimit,
    left: Left<C>,
    /// Random keys: clients cannot predict which keys share a place in the table.
    hasher: RandomState,
    refused: Counter,
    let_through: Counter,
}

type Left<C> = RateLimiter<u64, Table, C, NoOpMiddleware<<C as Clock>::Instant>>;

/// A clock that measures the time since its creation.
pub(crate) struct Elapsed(Instant);

impl Clock for Elapsed {
    type Instant = Duration;

    fn now(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Limiter {
    pub(super) fn new(model: &RateLimit) -> Self {
        Self::with_clock(model, Elapsed(Instant::now()))
    }

    /// Returns the response to rejected requests.
    pub(crate) fn answer(&self) -> &RateLimitAnswer {
        &self.model.answer
    }

    /// Returns the requests that the limit applies to.
    pub(crate) fn of(&self) -> &RateLimited {
        &self.model.of
    }

    /// Counts a request; `values` are the values of its descriptor.
    ///
    /// # Errors
    /// Returns the time until the next request is allowed, if the request has to be rejected.
    pub(crate) fn count(&self, request: &Request, values: &[(String, String)]) -> Result<(), Duration> {
        if !is_one_of(self.model.counted) {
            return Ok(());
        }
        let (key, last) = self.keys(request, values);
        let taken = self.take(key).and_then(|()| last.map_or(Ok(()), |last| self.take(last)));
        let Err(wait) = taken else { return Ok(()) };
        if is_one_of(self.model.enforced) {
            self.refused.increment(1);
            Err(wait)
        } else {
            self.let_through.increment(1);
            Ok(())
        }
    }

    /// Returns the key of a request, and a second one if lines of a header differ: servers use the first or the last
    /// of several lines.
    fn keys(&self, request: &Request, values: &[(String, String)]) -> (u64, Option<u64>) {
        match &self.model.by {
            RateLimitBy::All => (0, None),
            RateLimitBy::Values => (self.hasher.hash_one(values), None),
            RateLimitBy::Client(ipv4, ipv6) => {
                (self.hasher.hash_one(network(request.sender.client.ip(), *ipv4, *ipv6)), None)
            }
            RateLimitBy::Header(name) => {
                let mut lines = request.headers.get_all(name).iter();
                let first = lines.next();
                let last = lines.next_back().filter(|last| Some(*last) != first);
                (self.hasher.hash_one(first), last.map(|last| self.hasher.hash_one(Some(last))))
            }
        }
    }
}

impl<C: Clock> Limiter<C> {
    pub(super) fn with_clock(model: &RateLimit, clock: C) -> Self {
        // The configuration formats allow no faster rate.
        let period = model.rate.period().max(Duration::from_nanos(1));
        let quota = Quota::with_period(period).unwrap_or_else(|| Quota::per_second(model.burst));
        let keys = if model.by == RateLimitBy::All { NonZeroUsize::MIN } else { model.keys };
        let [refused, let_through] = ["refused", "let_through"]
            .map(|result| metrics::rate_limited(&model.name, model.by.kind(), result));
        Self {
            left: RateLimiter::new(quota.allow_burst(model.burst), Table::new(keys), clock),
            model: model.clone(),
            hasher: RandomState::new(),
            refused,
            let_through,
        }
    }

    /// Takes one request from the allowance of a key, or returns the time until one is available.
    pub(super) fn take(&self, key: u64) -> Result<(), Duration> {
        let taken = self.left.check_key(&key);
        taken.map_err(|until| until.wait_time_from(self.left.clock().now()))
    }
}

/// Returns the prefix of an address; an IPv4-mapped IPv6 address counts as IPv4.
pub(crate) fn network(address: IpAddr, ipv4: u8, ipv6: u8) -> (bool, u128) {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            (true, u128::from(address.to_bits() >> 32u32.saturating_sub(ipv4.into()).min(31)))
        }
        IpAddr::V6(address) => (false, address.to_bits() >> 128u32.saturating_sub(ipv6.into()).min(127)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use governor::clock::FakeRelativeClock;
    use quadrille_config::{
        fraction,
        model::{Place, Rate},
    };
    use std::num::NonZeroU32;

    fn limit(requests: u32, per: Duration, burst: u32, keys: usize) -> RateLimit {
        let number = |number| NonZeroU32::new(number).expect("a number");
        RateLimit {
            name: "test".into(),
            scope: "test".into(),
            rate: Rate { requests: number(requests), per },
            burst: number(burst),
            of: RateLimited::All,
            by: RateLimitBy::Client(24, 56),
            keys: NonZeroUsize::new(keys).expect("a number"),
            counted: fraction::ALL,
            enforced: fraction::ALL,
            answer: RateLimitAnswer::Own,
            place: Place::builtin(),
        }
    }

    fn limiter(model: &RateLimit) -> (Limiter<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (Limiter::with_clock(model, clock.clone()), clock)
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_burst_and_then_the_rate() {
        let (limiter, clock) = limiter(&limit(10, SECOND, 3, 100));
        assert!((0..3).all(|_| limiter.take(1).is_ok()));
        assert_eq!(limiter.take(1), Err(Duration::from_millis(100)));
        assert!(limiter.take(2).is_ok(), "another key has its own allowance");
        clock.advance(Duration::from_millis(99));
        assert_eq!(limiter.take(1), Err(Duration::from_millis(1)));
        clock.advance(Duration::from_millis(1));
        assert!(limiter.take(1).is_ok() && limiter.take(1).is_err());
        clock.advance(SECOND * 100);
        assert_eq!((0..10).filter(|_| limiter.take(1).is_ok()).count(), 3, "no more than a burst is kept");
    }

    /// One client sends ten times its rate for a thousand seconds, among a million others with one request each.
    /// Twice as many of those as the table holds have not regained their burst at any time.
    #[test]
    fn a_flood_of_other_keys_does_not_raise_the_rate() {
        let (limiter, clock) = limiter(&limit(1, SECOND, 5, 512));
        let mut served = 0;
        let mut stranger = 1000_u64;
        for _ in 0..10_000 {
            served += u32::from(limiter.take(7).is_ok());
            for _ in 0..100 {
                stranger += 1;
                let _ = limiter.take(stranger.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            }
            clock.advance(Duration::from_millis(100));
        }
        assert!((1000..=1010).contains(&served), "{served} of 1005");
    }

    #[test]
    fn networks_of_clients() {
        let same = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|text| network(text.parse().expect("an address"), 24, 56));
            one == other
        };
        assert!(same("192.0.2.1", "192.0.2.254") && same("192.0.2.1", "::ffff:192.0.2.9"));
        assert!(!same("192.0.2.1", "192.0.3.1"));
        assert!(same("2001:db8:0:1::1", "2001:db8:0:ff::1") && !same("2001:db8:0:1::1", "2001:db8:0:100::1"));
        let whole = |text: &str| network(text.parse().expect("an address"), 32, 128);
        assert_ne!(whole("192.0.2.1"), whole("192.0.2.2"));
        assert_ne!(whole("2001:db8::1"), whole("2001:db8::2"));
        assert_ne!(whole("0.0.0.1"), whole("::1"));
    }
}
