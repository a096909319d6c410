//! Client of Envoy's xDS, which receives configuration over the network, resource by resource.
//!
//! ```text
//!  gRPC ──> client ──> stream ──────────> decode ────────> UpdateHandler, which accepts or rejects
//!           (I/O,      subscriptions,     protobuf to
//!           backoff)   versions, ACK,     trees
//!                      NACK
//! ```
//!
//! `stream`, `decode` and `backoff` do no I/O. This crate does not interpret resources: a resource is a tree with the
//! field names of the .proto files, as if it had been written in YAML, and an [`UpdateHandler`] decides whether it
//! can be used.
//!
//! This crate links no TLS library; connections over TLS are provided by the caller ([`transport::Connect`]).
//!
//! `admin/descriptors` generates `decode/envoy.descriptors`, by which resources are decoded. `tests/control-plane`
//! is go-control-plane, in Go.

pub mod backoff;
pub mod client;
pub mod decode;
pub mod limits;
pub mod proto;
mod resource_type;
pub mod stream;
pub mod transport;

pub use client::{Client, Subscriptions, UpdateHandler};
pub use limits::Limits;
pub use quadrille_envoy::ResourceType;
pub use stream::{Dialect, Interest, Outcome, Rejection, Resource, Update};
