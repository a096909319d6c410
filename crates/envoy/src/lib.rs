//! Front ends that translate Envoy's and Istio's configuration to the model of `quadrille_config`.
//!
//! ```text
//!  bootstrap.yaml ── tree ─┐                                     ┌─> Gateway (the gateway's model)
//!  files of resources ─────┼─> reader + schema ─> Resources ─────┤
//!  xDS (as the same tree) ─┘        │             by name        └─> References (names to request)
//!                                   └─> errors and warnings with path and line
//! ```
//!
//! Each resource is read once and validated by itself; names are resolved when a gateway is built from all of them. A
//! field that would weaken security if it were ignored is refused with its path; harmless unknown fields are ignored
//! with one warning. The crate opens no sockets: the caller provides the resources.
//!
//! - `schema`: the effect of every field of every message; `reader` walks a tree by it, `reference` writes the
//!   pages.
//! - `bootstrap`, `resource`, `resources`: the file, one resource, and the gateway built from all of them.
//! - `settings`: settings of a listener in Envoy that are process-wide here; `overload`: the overload manager.
//! - `listener`, `listener_filters`, `chain_match`, `filters`, `http`, `route`: listeners and requests.
//! - `cluster`, `endpoints`, `original_destination`, `transport_socket`, `upstream_http`: upstreams.
//! - `tls`, `istio`: certificates and secrets, and private key providers; `redaction` hides secrets.

mod access_log;
mod basic_auth;
mod bootstrap;
mod buffer;
mod chain_match;
mod cluster;
mod common;
mod compressor;
mod config_source;
mod cross_origin;
mod decides_access;
mod descriptor;
mod endpoints;
mod envoy_headers;
mod ext_authz;
mod fault;
mod features;
mod filters;
mod fraction;
mod grpc_service;
mod hash_policy;
mod header_changes;
mod health;
mod http;
pub mod istio;
mod jwt;
mod listener;
mod listener_filters;
mod local_rate_limit;
mod local_reply;
mod metadata;
mod mirror;
mod original_destination;
mod overload;
mod per_route;
mod quic;
mod rate_limit_service;
mod rbac;
mod reader;
mod redaction;
mod reference;
mod request_condition;
mod request_id;
mod resource;
mod resource_type;
mod resources;
mod route;
mod schema;
mod settings;
mod status_code;
#[cfg(test)]
mod tests;
mod tls;
mod tracing;
mod transport_socket;
mod upgrades;
mod upstream_http;
mod upstream_limits;
mod values;

pub use bootstrap::{Bootstrap, DynamicResources, bootstrap, load};
pub use cluster::{Cluster, EndpointsReference};
pub use common::Address;
pub use config_source::{ApiSource, ConfigSource};
pub use decides_access::decides_access;
pub use endpoints::{Endpoint, Endpoints};
pub use http::RoutesReference;
pub use listener::Listener;

pub use reference::{Page, reference};
pub use resource::{Read, Resource, read, read_remote};
pub use resource_type::ResourceType;
pub use resources::{References, Resources};
pub use route::RouteConfiguration;
pub use settings::ProcessSettings;
pub use tls::{ClusterTls, Secret, SecretReference};
