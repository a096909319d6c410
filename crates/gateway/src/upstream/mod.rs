//! Upstreams: load balancing, health checks, and connections to endpoints.
//!
//! - `cluster`: an upstream with its endpoints and state; `weighted`: distribution to several upstreams.
//! - `names`, `refresh`: addresses of endpoints that are given by name, and their periodic lookup.
//! - `balance`, `health`, `limits`: the choice of an endpoint, health checks, circuit breakers; `waiting`: requests that
//!   wait for an endpoint.
//! - `pool`: idle connections of an event loop.
//! - `connect`, `tls`, `address`, `source_port`: new connections.
//! - `exchange`, `endpoint_call`: requests and responses on a connection.

mod address;
mod balance;
mod cluster;
mod connect;
mod endpoint_call;
pub(crate) mod exchange;
mod health;
mod limits;
mod names;
mod pool;
mod refresh;
mod source_port;
mod tls;
mod waiting;
mod weighted;

pub(crate) use address::ServerAddress;
pub(crate) use balance::{balancer::NoServer, endpoint::Endpoints, outliers::RequestOutcome, server::Server};
pub(crate) use cluster::{ActiveRequest, Retry, Upstream, Upstreams};
pub(crate) use connect::connector::ServerStream;
pub(crate) use endpoint_call::{CallFailure, EndpointCall};
pub(crate) use exchange::{
    collect::{UnreadBody, read_whole},
    error::{ClientBodyError, ExchangeError, Limits},
    request_body::{BoxError, RequestBody},
};
pub(crate) use limits::Overloaded;
pub(crate) use names::table::Names;
pub(crate) use pool::{ConnectionPool, Lease, ResponseBody};
pub(crate) use refresh::NameRefresh;
pub(crate) use tls::{alpn::Alpn, credentials::Credentials};
pub(crate) use waiting::WaitFailure;
pub(crate) use weighted::{WeightedUpstream, WeightedUpstreams};

/// Maximum size of a response's header in bytes.
const MOST_RESPONSE_HEADER: u32 = 256 * 1024;
