//! Envoy's xDS, as a client: configuration that comes over the network, resource by resource.
//!
//! ```text
//!  gRPC ──> client ──> stream ──────────> decode ────────> UpdateHandler, which accepts or refuses
//!           (I/O,      subscriptions,     protobuf to
//!           backoff)   versions, ACK,     trees
//!                      NACK
//! ```
//!
//! `stream`, `decode` and `backoff` do no I/O. What a resource means is not decided here: it is a tree with the names
//! of the .proto files, as if it had been written in YAML, and a [`UpdateHandler`] says whether it can be used.
//!
//! This crate links no TLS library; a connection that is not plain comes from outside ([`transport::Connect`]).

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
pub use stream::{Dialect, Interest, Rejection, Resource, Update};
