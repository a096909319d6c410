//! Global rate limits by a service, as in Envoy's filter.

use super::{Descriptor, HeaderChange, Place};
use std::time::Duration;

/// A rate limit service that is queried about requests before they go upstream:
/// `envoy.service.ratelimit.v3.RateLimitService`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitService {
    /// The filter's name, by which routes refer to it.
    pub filter: String,
    /// Whether it is queried on all routes that do not disable it; otherwise only on routes that enable it.
    pub on: bool,
    /// The upstream of the service's servers.
    pub upstream: String,
    /// The authority of queries.
    pub authority: String,
    /// Time limit of a query.
    pub timeout: Duration,
    /// The domain of the service's limits.
    pub domain: String,
    /// The stage of the route and host descriptors that are sent.
    pub stage: u8,
    /// Descriptors that are sent in their place, if there are any.
    pub descriptors: Vec<Descriptor>,
    /// The clients whose requests are checked.
    pub clients: RateLimitedClients,
    /// The share of requests that are checked, in parts per million.
    pub asked: u32,
    /// The share of excess requests that are refused, in parts per million.
    pub enforced: u32,
    /// The share of requests that are refused if the query fails, in parts per million.
    pub denied_on_failure: u32,
    /// Status of responses to refused requests.
    pub status: u16,
    /// Status of responses to requests that are refused because the query failed.
    pub status_on_error: u16,
    /// Whether refused gRPC calls get the status `RESOURCE_EXHAUSTED` instead of `UNAVAILABLE`.
    pub resource_exhausted: bool,
    /// Header changes of responses to refused requests.
    pub response_headers: Vec<HeaderChange>,
    /// Whether `x-envoy-ratelimited` is sent to limited clients.
    pub tells_limited: bool,
    /// Whether the remaining capacity is sent to clients in `x-ratelimit-*`.
    pub tells_left: bool,
    /// The place in the configuration.
    pub place: Place,
}

/// The clients whose requests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitedClients {
    /// All clients.
    All,
    /// Internal clients.
    Internal,
    /// External clients.
    External,
}
