//! Load balancing: endpoints with their state, and the choice of the next one.
//!
//! - `balancer`: the choice, by the places of `round_robin` or by a consistent `hash_ring`.
//! - `members`: the endpoints with their state; `endpoint`, `server`: an endpoint as configured, and as selected.
//! - `outliers`: ejection by the outcomes of requests.

pub(super) mod balancer;
pub(super) mod endpoint;
pub(super) mod hash_ring;
mod members;
pub(super) mod outliers;
pub(super) mod round_robin;
pub(super) mod server;
