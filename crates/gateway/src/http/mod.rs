//! HTTP: requests are read, routed, answered or forwarded, and counted. hyper and h2 speak the protocol.

mod access;
mod access_step;
mod answer;
mod authority;
mod authorization;
mod basic_auth;
mod client_body;
mod compression;
mod cors;
mod descriptors;
mod destination;
mod ending;
mod envoy_forwarding;
mod envoy_headers;
mod error_page;
mod error_pages;
mod exchange;
mod fault;
mod filter_chain;
mod forward;
mod forwarded_certificate;
mod forwarded_for;
mod forwarded_headers;
mod grpc_error;
mod header_changes;
mod header_spelling;
mod hop_by_hop;
mod http1;
mod http2;
mod http3;
mod http3_head;
mod informational;
mod jwt;
mod limited;
mod local_reply;
mod metadata;
mod mirror;
mod mirrored_body;
mod outcome;
mod path_normalization;
mod quality;
mod rate_limit;
mod rate_limit_service;
mod read_ahead;
mod refusal;
mod replay;
mod request;
mod request_id;
mod request_size;
mod request_view;
mod response_body;
mod retry;
mod rewrite;
mod router;
#[cfg(test)]
mod router_tests;
mod service;
mod service_call;
mod shared_stream;
mod stickiness;
mod stream_resets;
mod trace;
mod trace_context;
mod tunnel;
mod upstream_limits;
mod upstream_request;
mod user;

pub(crate) use access_step::Step as AccessStep;
pub(crate) use basic_auth::{Authenticator, Authenticators};
pub(crate) use error_pages::ErrorPages;
pub(crate) use filter_chain::{HttpConnection, HttpFilterChain, HttpSettings};
pub(crate) use jwt::KeyFetchers;
pub(crate) use rate_limit::Limiters;
pub(crate) use router::Router;

use crate::{quic::Link, tls::ClientStream};
use std::sync::Arc;

/// Serves a connection until it ends.
pub(crate) async fn serve(stream: ClientStream, http2: bool, connection: HttpConnection) {
    let connection = Arc::new(connection);
    match http2 {
        true => Box::pin(http2::serve(stream, connection)).await,
        false => Box::pin(http1::serve(stream, connection)).await,
    }
}

/// Serves a connection of HTTP/3 until it ends, or is to be closed.
pub(crate) async fn serve_http3(link: &Link, connection: HttpConnection) {
    Box::pin(http3::serve(link, Arc::new(connection))).await;
}
