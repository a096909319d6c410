//! The servers behind the gateway: which is next, whether it is healthy, how to reach it.

mod address;
mod alpn;
mod balancer;
mod breaker;
mod client_sessions;
mod client_tls;
mod cluster;
mod connector;
mod endpoint;
mod exchange;
pub(crate) mod grpc_call;
mod grpc_health;
mod health;
mod http1;
mod http2;
mod names;
mod outliers;
mod peer_key;
mod pool;
mod proxy_header;
mod refresh;
mod request_body;
mod resolver;
mod ring;
mod rotation;
mod server;
mod source_port;
mod weighted;
mod whole_body;

pub(crate) use address::ServerAddress;
pub(crate) use alpn::Alpn;
pub(crate) use breaker::Overloaded;
pub(crate) use client_tls::Credentials;
pub(crate) use cluster::{ActiveRequest, Retry, Upstream, Upstreams};
pub(crate) use connector::ServerStream;
pub(crate) use endpoint::Endpoints;
pub(crate) use exchange::{ClientBodyError, ExchangeError, Limits};
pub(crate) use names::Names;
pub(crate) use outliers::RequestOutcome;
pub(crate) use pool::{ConnectionPool, Lease, ResponseBody};
pub(crate) use refresh::NameRefresh;
pub(crate) use request_body::{BoxError, RequestBody};
pub(crate) use server::Server;
pub(crate) use weighted::{WeightedUpstream, WeightedUpstreams};
pub(crate) use whole_body::{UnreadBody, read_whole};

/// Bytes of a response's header, at most.
const MOST_RESPONSE_HEADER: u32 = 256 * 1024;
