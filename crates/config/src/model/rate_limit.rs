//! How many requests are served in a time.

use super::{Descriptor, HeaderChange, HostDescriptors, Place};
use http::HeaderName;
use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

/// How many requests are served in a time: of all clients together, or of each that is told apart. What is left of it
/// comes back evenly.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimit {
    /// For metrics.
    pub name: String,
    /// Whose limit it is. Limits of one scope that say the same count together, and go on over a reload.
    pub scope: String,
    /// How many come back in which time.
    pub rate: Rate,
    /// How many may come at once, after a pause.
    pub burst: NonZeroU32,
    /// Which requests it is for.
    pub of: RateLimited,
    /// What has a limit of its own.
    pub by: RateLimitBy,
    /// How many of these are told apart at a time. Beyond that, the one that has used least is forgotten.
    pub keys: NonZeroUsize,
    /// So many of a million requests count.
    pub counted: u32,
    /// So many of a million requests that are too many are refused.
    pub enforced: u32,
    /// What is refused gets this.
    pub answer: RateLimitAnswer,
    /// Where the limit was written.
    pub place: Place,
}

/// A number of requests in a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// So many.
    pub requests: NonZeroU32,
    /// In this time, which is not zero.
    pub per: Duration,
}

/// Which requests a limit is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimited {
    /// All.
    All,
    /// Those that have this descriptor.
    Described(Arc<DescribedRequests>),
    /// Those for which no limit before it counts, since they have none of its descriptors.
    Others,
}

/// Requests with a descriptor.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DescribedRequests {
    /// Its keys with their values, in this order; `None` is any value.
    pub entries: Vec<(String, Option<String>)>,
    /// How descriptors are made of a request.
    pub made: Arc<MadeDescriptors>,
}

/// Which descriptors a filter makes of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct MadeDescriptors {
    /// Its own. Without any, those of routes and hosts.
    pub own: Vec<Descriptor>,
    /// Those of this stage.
    pub stage: u8,
    /// Which of hosts.
    pub host: HostDescriptors,
}

/// What has a limit of its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitBy {
    /// All requests have it together.
    All,
    /// Each list of values that descriptors have.
    Values,
    /// Each network of clients, by so many bits of an IPv4 and of an IPv6 address.
    Client(u8, u8),
    /// Each value of this header; requests without it have one together.
    Header(HeaderName),
}

/// What a refused request gets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitAnswer {
    /// An error of the gateway's own with status 429, and `Retry-After`.
    Own,
    /// Envoy's text.
    Envoy(RateLimitReply),
}

/// What a refused request gets, as Envoy's filter has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitReply {
    /// HTTP's status.
    pub status: u16,
    /// Changes to the headers.
    pub headers: Vec<HeaderChange>,
    /// Calls of gRPC have the status `RESOURCE_EXHAUSTED` in the place of what HTTP's status means for them.
    pub resource_exhausted: bool,
}

/// What a route says of limits.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RouteRateLimits {
    /// These count besides those of the chain.
    Besides(Vec<RateLimit>),
    /// These count where the chain has a step for limits, in the place of that step's own.
    InPlace(Vec<RateLimit>),
}

impl RateLimit {
    /// Keys that are told apart if nothing is said.
    pub const KEYS: NonZeroUsize = NonZeroUsize::MIN.saturating_add((1 << 16) - 1);
    /// The longest time in which a burst may come back.
    const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

    /// Whether a burst comes back within a year, and faster than a clock can tell.
    pub fn is_served(rate: Rate, burst: NonZeroU32) -> bool {
        let period = rate.period();
        !period.is_zero() && period.checked_mul(burst.get()).is_some_and(|time| time <= Self::LONGEST)
    }
}

impl DescribedRequests {
    /// Whether no value may be any.
    pub fn is_exact(&self) -> bool {
        self.entries.iter().all(|(_, value)| value.is_some())
    }

    /// Whether a descriptor of a request is this one.
    pub fn is_like(&self, entries: &[(String, String)]) -> bool {
        let is_like = |((key, wanted), (other, value)): (&(String, Option<String>), &(String, String))| {
            key == other && wanted.as_ref().is_none_or(|wanted| wanted == value)
        };
        self.entries.len() == entries.len() && self.entries.iter().zip(entries).all(is_like)
    }
}

impl Rate {
    /// So many, at least one, in a minute.
    pub const fn per_minute(requests: u32) -> Self {
        let requests = NonZeroU32::MIN.saturating_add(requests.saturating_sub(1));
        Self { requests, per: Duration::from_secs(60) }
    }

    /// From one request to the next.
    pub fn period(&self) -> Duration {
        self.per / self.requests.get()
    }
}

impl RateLimitBy {
    /// In one word.
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
    /// All that it says.
    pub fn limits(&self) -> &[RateLimit] {
        match self {
            Self::Besides(limits) | Self::InPlace(limits) => limits,
        }
    }

    /// Those that count besides the chain's.
    pub fn besides(&self) -> &[RateLimit] {
        match self {
            Self::Besides(limits) => limits,
            Self::InPlace(_) => &[],
        }
    }
}

/// None besides the chain's.
impl Default for RouteRateLimits {
    fn default() -> Self {
        Self::Besides(Vec::new())
    }
}
