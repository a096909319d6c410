//! Access steps that run before a request is routed, and the checks that a route adds.
//!
//! - `step`, `call`: the interface of access steps, and the request that they check.
//! - `rules`, `request_rules`, `jwt`, `basic_auth`, `authorization`: access steps. Claims of tokens become dynamic
//!   metadata. `per_route`: the choice among those of a chain and of its routes.
//! - `rate_limits`, `rate_limit_service`: local limits, and those of an external service; `rate_limit_descriptors`
//!   builds the descriptors of both.
//! - `service_call`: requests to authorization servers and rate limit services, and for the keys of tokens.
//! - `cors`, `fault_injection`: policies of a route; `request_size`, `memory_pressure`: limits.

pub(super) mod authorization;
pub(super) mod basic_auth;
pub(super) mod call;
pub(super) mod cors;
pub(super) mod fault_injection;
pub(super) mod jwt;
pub(super) mod memory_pressure;
mod per_route;
pub(super) mod rate_limit_descriptors;
pub(super) mod rate_limit_service;
pub(super) mod rate_limits;
pub(super) mod request_rules;
pub(super) mod request_size;
pub(super) mod rules;
pub(super) mod service_call;
pub(super) mod step;
