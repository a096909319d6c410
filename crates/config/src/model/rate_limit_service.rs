//! Services that are asked whether a request is one too many, as Envoy's filter asks them.

use super::{Descriptor, HeaderChange, Place};
use std::time::Duration;

/// A service that is asked about requests before they go upstream: `envoy.service.ratelimit.v3.RateLimitService`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RateLimitService {
    /// The filter's name, by which routes say more.
    pub filter: String,
    /// It is asked on all routes that say nothing else; otherwise on those that switch it on.
    pub on: bool,
    /// The upstream whose servers are asked.
    pub upstream: String,
    /// Under which authority.
    pub authority: String,
    /// How long it may take.
    pub timeout: Duration,
    /// Which limits of the service count.
    pub domain: String,
    /// Which descriptors of routes and hosts are told.
    pub stage: u8,
    /// In their place, if there are any.
    pub descriptors: Vec<Descriptor>,
    /// About whose requests it is asked.
    pub clients: RateLimitedClients,
    /// It is asked about so many of a million requests.
    pub asked: u32,
    /// So many of a million requests that are too many are refused.
    pub enforced: u32,
    /// So many of a million requests are refused about which it cannot be asked.
    pub denied_on_failure: u32,
    /// Of refused requests.
    pub status: u16,
    /// Of requests about which it cannot be asked.
    pub status_on_error: u16,
    /// Calls of gRPC that are refused have the status `RESOURCE_EXHAUSTED` in the place of `UNAVAILABLE`.
    pub resource_exhausted: bool,
    /// What refused clients get.
    pub response_headers: Vec<HeaderChange>,
    /// Clients are told by `x-envoy-ratelimited` that they are limited.
    pub tells_limited: bool,
    /// Clients are told by `x-ratelimit-*` what is left.
    pub tells_left: bool,
    /// Where it was written.
    pub place: Place,
}

/// Whose requests count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RateLimitedClients {
    /// All.
    All,
    /// Of those that come from inside.
    Internal,
    /// Of those that come from outside.
    External,
}
