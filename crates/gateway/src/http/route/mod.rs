//! Routing: the table of hosts and routes, and what a route changes in a request or a response.
//!
//! - `router`: the table.
//! - `rewrite`, `header_changes`: changes to paths, locations and headers.
//! - `own_headers`: headers that have the gateway's own value before conditions read them.
//! - `session_affinity`: hash policies that keep a client on an endpoint.

pub(super) mod header_changes;
pub(super) mod own_headers;
pub(super) mod rewrite;
pub(super) mod router;
#[cfg(test)]
mod router_tests;
pub(super) mod session_affinity;
