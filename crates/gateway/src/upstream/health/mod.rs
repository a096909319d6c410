//! Active health checks over TCP, HTTP and gRPC.
//!
//! `checker` opens connections and decides; `grpc_health` is the gRPC check.

pub(super) mod checker;
pub(super) mod grpc_health;
