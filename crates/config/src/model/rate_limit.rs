//! Local rate limits.

use super::{Descriptor, HeaderChange, HostDescriptors, Place};
use http::HeaderName;
use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

/// A local rate limit: a token bucket for all requests together, or for each key. Capacity returns evenly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// The name, for metrics.
    pub name: String,
    /// The scope. Equal limits of one scope share their state, which is kept over a reload.
    pub scope: String,
    /// The rate at which capacity returns.
    pub rate: Rate,
    /// Maximum number of requests at once, after a pause.
    pub burst: NonZeroU32,
    /// The limited requests.
    pub of: RateLimited,
    /// The key that has a limit of its own.
    pub by: RateLimitBy,
    /// Maximum number of keys tracked at a time. Beyond that, the least used one is evicted.
    pub keys: NonZeroUsize,
    /// The share of requests that are counted, in parts per million.
    pub counted: u32,
    /// The share of excess requests that are refused, in parts per million.
    pub enforced: u32,
    /// The response to refused requests.
    pub answer: RateLimitAnswer,
    /// The place of the limit in the configuration.
    pub place: Place,
}

/// A number of requests in a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The number of requests.
    pub requests: NonZeroU32,
    /// The period, which is not zero.
    pub per: Duration,
}

/// The requests that a limit counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimited {
    /// All.
    All,
    /// Requests with this descriptor.
    Described(Arc<DescribedRequests>),
    /// Requests that no earlier limit counts, since they have no matching descriptor.
    Others,
}

/// Requests with a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedRequests {
    /// The keys with their values, in this order; `None` matches any value.
    pub entries: Vec<(String, Option<String>)>,
    /// The descriptors that are made from a request.
    pub made: Arc<MadeDescriptors>,
}

/// The descriptors that a filter makes from a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MadeDescriptors {
    /// The filter's own descriptors. If empty, those of routes and hosts are used.
    pub own: Vec<Descriptor>,
    /// The stage of the descriptors that are used.
    pub stage: u8,
    /// The use of the hosts' descriptors.
    pub host: HostDescriptors,
}

/// The key that has a limit of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitBy {
    /// All requests share one limit.
    All,
    /// Each list of descriptor values.
    Values,
    /// Each network of clients, with these prefix lengths for IPv4 and IPv6.
    Client(u8, u8),
    /// Each value of this header; requests without it share one limit.
    Header(HeaderName),
}

/// The response to a refused request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitAnswer {
    /// The gateway's own error with status 429, and `Retry-After`.
    Own,
    /// Envoy's text.
    Envoy(RateLimitReply),
}

/// The response to a refused request, as in Envoy's filter.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitReply {
    /// The HTTP status.
    pub status: u16,
    /// Changes to the headers.
    pub headers: Vec<HeaderChange>,
    /// Whether gRPC calls get the status `RESOURCE_EXHAUSTED` instead of the mapping of the HTTP status.
    pub resource_exhausted: bool,
}

/// The rate limits of a route.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RouteRateLimits {
    /// Limits in addition to the chain's.
    Besides(Vec<RateLimit>),
    /// Limits that replace those of the chain's rate limit step.
    InPlace(Vec<RateLimit>),
}

impl RateLimit {
    /// The default number of tracked keys.
    pub const KEYS: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 16) - 1);
    /// Maximum time in which the capacity of a burst may return.
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

    /// Returns whether the capacity of a burst returns within a year, and that of one request takes at least a
    /// nanosecond.
    pub fn is_served(rate: Rate, burst: NonZeroU32) -> bool {
        let period = rate.period();
        !period.is_zero() && period.checked_mul(burst.get()).is_some_and(|time| time <= Self::LONGEST)
    }
}

impl DescribedRequests {
    /// Returns whether all values are fixed.
    pub fn is_exact(&self) -> bool {
        self.entries.iter().all(|(_, value)| value.is_some())
    }

    /// Returns whether a descriptor of a request matches.
    pub fn is_like(&self, entries: &[(String, String)]) -> bool {
        let is_like = |((key, wanted), (other, value)): (&(String, Option<String>), &(String, String))| {
            key == other && wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        self.entries.len() == entries.len() && self.entries.iter().zip(entries).all(is_like)
    }
}

impl Rate {
    /// Returns a rate per minute, of at least one.
    pub const fn per_minute(requests: u32) -> Self {
        let requests = NonZeroU32::MIN.saturating_add(requests.saturating_sub(1));
        Self { requests, per: Duration::from_secs(60) }
    }

    /// Returns the time between requests.
    pub fn period(&self) -> Duration {
        self.per / self.requests.get()
    }
}

impl RateLimitBy {
    /// Returns the kind in one word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Values => "descriptor",
            Self::Client(..) => "client",
            Self::Header(_) => "header",
        }
    }
}

impl RouteRateLimits {
    /// Returns all limits.
    pub fn limits(&self) -> &[RateLimit] {
        match self {
            Self::Besides(limits) | Self::InPlace(limits) => limits,
        }
    }

    /// Returns the limits that apply in addition to the chain's.
    pub fn besides(&self) -> &[RateLimit] {
        match self {
            Self::Besides(limits) => limits,
            Self::InPlace(_) => &[],
        }
    }
}

/// No limits in addition to the chain's.
impl Default for RouteRateLimits {
    fn default() -> Self {
        Self::Besides(Vec::new())
    }
}
