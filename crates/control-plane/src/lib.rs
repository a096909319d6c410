//! The control planes of an Envoy bootstrap: their streams, the resources that they send, and Envoy's admin pages.
//!
//! ```text
//!  control plane ──> quadrille_xds::Client ──> GatewayUpdater ──> ResourceStore ──> quadrille_gateway::Control
//!                            ^                                         │
//!                            └── SubscriptionManager (streams) <── references to resources
//! ```
//!
//! A response is acknowledged once the gateway has put it into service, and rejected with the gateway's reason if it
//! could not: a key that does not fit its certificate gets no further than this. A rejected response changes nothing.
//!
//! All of it runs on one thread that yields to the event loops: reading ten thousand routes takes no time from
//! handshakes.

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
