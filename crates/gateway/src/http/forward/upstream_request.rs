//! Upstream requests: the client's request, adapted for an endpoint.

use super::{
    destination::Destination,
    envoy::{self, Attempt},
};
use crate::{
    connection::Connection,
    http::{
        request::{authority::Authority, forwarded_headers, hop_by_hop, with_query},
        route::rewrite,
    },
    upstream::Server,
};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version, header, uri::PathAndQuery};
use quadrille_config::model::HostRewrite;

const EARLY_DATA: HeaderName = HeaderName::from_static("early-data");

/// Number of headers added: `Host`, `Early-Data`, three of `X-Forwarded-*` and four of `X-Envoy-*`.
const MOST_ADDED: usize = 9;

/// A part of the upstream request would be invalid.
pub(crate) struct Invalid;

/// Builds the upstream request without its body, according to the route, the endpoint and the HTTP version.
pub(crate) fn build(
    destination: &Destination<'_>,
    connection: &Connection,
    server: &Server,
    http2: bool,
    attempt: Attempt,
) -> Result<Request<()>, Invalid> {
    let request = destination.request;
    let mut headers = request.headers.clone();
    // Reserves space for the headers added below at once.
    headers.reserve(MOST_ADDED);
    hop_by_hop::remove_always(&mut headers);
    headers.remove(header::EXPECT);
    if !http2 && !destination.to.request_trailers {
        headers.remove(header::TRAILER);
    }
    let host = request.authority.as_ref().map(Authority::to_header).transpose().map_err(|_| Invalid)?;
    if let Some(host) = &host
        && headers.get(header::HOST) != Some(host)
    {
        headers.insert(header::HOST, host.clone());
    }
    if request.is_multiplexed() {
        join_cookies(&mut headers);
    }
    if request.early {
        headers.insert(EARLY_DATA, HeaderValue::from_static("1"));
    }
    forwarded_headers::set(request, connection, host, &mut headers).map_err(|_| Invalid)?;
    let path = path(destination)?;
    let other_host = rewrite_host(destination, server, &mut headers);
    if request.websocket {
        websocket(&mut headers, request.is_multiplexed());
    } else if let Some(protocol) = &request.upgrade {
        switch(&mut headers, protocol.clone());
    }
    envoy::tell_server(&mut headers, destination, attempt);
    destination.change_request(&mut headers, connection);
    envoy::tell_origin(&mut headers, destination, other_host);
    let mut built = Request::new(());
    *built.method_mut() = request.method.clone();
    *built.version_mut() = match http2 {
        true => Version::HTTP_2,
        false if headers.contains_key(header::HOST) => Version::HTTP_11,
        // HTTP/1.1 requires a host, and upstreams receive no host that the routes have not seen.
        false => Version::HTTP_10,
    };
    *built.uri_mut() = if http2 {
        let host = headers.remove(header::HOST).ok_or(Invalid)?;
        let scheme = if destination.upstream.speaks_tls(server) { "https" } else { "http" };
        let uri = Uri::builder().scheme(scheme).authority(host.as_bytes()).path_and_query(path);
        uri.build().map_err(|_| Invalid)?
    } else {
        Uri::from(path)
    };
    *built.headers_mut() = headers;
    Ok(built)
}

/// Returns the path and query, rewritten if the route requires it.
fn path(destination: &Destination<'_>) -> Result<PathAndQuery, Invalid> {
    let uri = &destination.request.uri;
    match &destination.to.rewrite {
        Some(to) => {
            // The scheme is not a part of rewrites.
            let request = destination.request.view(false);
            let path = rewrite::path(to, &destination.matched.route().path, &request);
            with_query(&path, uri.query()).map_err(|_| Invalid)
        }
        None => Ok(destination.request.sent_path()),
    }
}

/// Rewrites the host if the route requires it. Returns whether it did.
fn rewrite_host(destination: &Destination<'_>, server: &Server, headers: &mut HeaderMap) -> bool {
    let host = match &destination.to.host {
        None => None,
        Some(HostRewrite::Literal(host)) => HeaderValue::from_str(host).ok(),
        Some(HostRewrite::Server) => HeaderValue::from_str(&server.host).ok(),
        Some(HostRewrite::Header(name)) => destination.request.headers.get(name).cloned(),
    };
    let Some(host) = host else { return false };
    headers.insert(header::HOST, host);
    true
}

/// Joins cookies: HTTP/2 and HTTP/3 may send them in several headers, HTTP/1 must not (RFC 9113 section 8.2.3).
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().nth(1).is_none() {
        return;
    }
    let cookies: Vec<&[u8]> = headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&cookies.join(&b"; "[..])) {
        headers.insert(header::COOKIE, joined);
    }
}

/// Adds the headers of an RFC 6455 handshake, which HTTP/2 and HTTP/3 clients do not send (RFC 8441 section 5).
fn websocket(headers: &mut HeaderMap, multiplexed: bool) {
    switch(headers, HeaderValue::from_static("websocket"));
    if multiplexed {
        let nonce: [u8; 16] = std::array::from_fn(|_| fastrand::u8(..));
        if let Ok(key) = HeaderValue::try_from(boring::base64::encode_block(&nonce)) {
            headers.insert(header::SEC_WEBSOCKET_KEY, key);
        }
    }
}

/// Adds the headers of a request to switch to this protocol (RFC 9110 section 7.8).
fn switch(headers: &mut HeaderMap, protocol: HeaderValue) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, protocol);
}
