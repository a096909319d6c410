//! The servers behind the gateway: which is next, whether it is healthy, how to reach it.

mod balancer;
mod client_tls;
mod cluster;
mod health;
mod load;
mod peer;
mod proxy_header;
mod server;
mod upgrade;
mod weighted;

pub(crate) use cluster::{ActiveRequest, Upstream, Upstreams};
pub(crate) use proxy_header::proxy_header;
pub(crate) use server::{Endpoints, Server};
pub(crate) use weighted::{WeightedUpstream, WeightedUpstreams};
