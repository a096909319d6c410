//! HTTP: requests are read, routed, then forwarded or served with a local response, and counted. hyper, h2 and quiche
//! implement the protocols.
//!
//! Rooms, in the way of a request; each imports only from those below it:
//!
//! | room | concern |
//! |---|---|
//! | [`client`] | connections of HTTP/1.1, HTTP/2 and HTTP/3 clients |
//! | [`service`] | one request: admission, access, route, action |
//! | [`explanation`] | the route that a request takes, and why not the others |
//! | [`forward`] | the exchange with an upstream: attempts, retries, mirrors |
//! | [`response`] | local responses, response bodies, compression, tunnels |
//! | [`exchange`], [`settings`] | accounting of one request; the settings of a filter chain |
//! | [`filter`] | the access steps, and what a route checks beside them |
//! | [`route`] | the routing table, header changes, rewrites, session affinity |
//! | [`body`] | request bodies: read, buffered, replayed, mirrored |
//! | [`rate_limit`], [`trace`], [`error`] | token buckets; spans; error pages and refusals |
//! | [`request`] | the request's head and what is derived from it |

mod body;
mod client;
mod error;
mod exchange;
mod explanation;
mod filter;
mod forward;
mod rate_limit;
mod request;
mod response;
mod response_fields;
mod route;
mod service;
mod settings;
mod trace;

pub(crate) use error::error_pages::ErrorPages;
pub use explanation::{ExplainedRequest, ExplainedStep, RouteExplanation, explain_route};
pub(crate) use filter::{
    basic_auth::{Authenticator, Authenticators},
    jwt::KeyFetchers,
    step::Step as AccessStep,
};
pub(crate) use rate_limit::Limiters;
pub(crate) use route::{own_headers::OwnHeaders, router::Router};
pub(crate) use settings::{HttpConnection, HttpFilterChain, HttpSettings};

use crate::{admission::Transfers, quic::Link, tls::ClientStream};
use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::Arc,
    task::ready,
};

/// Serves a connection until it ends, in steps of the work that its bytes do not show; those of its bytes are counted
/// where they are transferred.
pub(crate) async fn serve(
    stream: ClientStream,
    http2: bool,
    connection: HttpConnection,
    mut steps: Transfers,
) {
    let connection = Arc::new(connection);
    let properties = Arc::clone(&connection.connection);
    let mut serving: Pin<Box<dyn Future<Output = ()> + Send>> = match http2 {
        true => Box::pin(client::http2::serve(stream, connection)),
        false => Box::pin(client::http1::serve(stream, connection)),
    };
    poll_fn(|context| {
        ready!(steps.poll_allowed(context));
        let served = serving.as_mut().poll(context);
        steps.charge(properties.charges.take());
        served
    })
    .await;
}

/// Serves an HTTP/3 connection until it ends or has to be closed.
pub(crate) async fn serve_http3(link: &Link, connection: HttpConnection, transfers: Transfers) {
    Box::pin(client::http3::serve(link, Arc::new(connection), transfers)).await;
}
