//! Client of the control planes of an Envoy bootstrap: their streams, the resources that they send, and Envoy's admin
//! pages.
//!
//! ```text
//!  control plane ──> quadrille_xds::Client ──> GatewayUpdater ──> ResourceStore ──> quadrille_gateway::Control
//!                            ^                                         │
//!                            └── SubscriptionManager (streams) <── references to resources
//! ```
//!
//! A response is acknowledged after the gateway has put it into service, and rejected with the gateway's reason if
//! that fails: a key that does not match its certificate is rejected. A rejected response changes nothing.
//!
//! All work runs on one thread that yields to the event loops: reading ten thousand routes does not delay handshakes.
//!
//! - `control_planes`, `subscription_manager`: required streams, and the subscriptions of each.
//! - `resource_store`: known and active resources, without I/O; `gateway_updater` applies changes.
//! - `refusals`, `trust`: rejected resources, and the limits on trust in a control plane.
//! - `admin`, `stats`, `state`: Envoy's admin pages, and their data.

mod admin;
mod control_planes;
mod gateway_updater;
mod node;
mod refusals;
mod resource_store;
mod state;
mod stats;
mod subscription_manager;
mod tls;
mod trust;
mod xds_manager;

#[cfg(test)]
mod tests;

pub use admin::EnvoyPages;
pub use trust::{OnRefusedPolicy, RefusalsInReady, Trust};
pub use xds_manager::XdsManager;
