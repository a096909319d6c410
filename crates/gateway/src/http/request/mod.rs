//! Client requests, as received and as forwarded.
//!
//! - `authority`, `path_normalization`: the host and path used alike by routes, logs and upstreams; `http3_head`:
//!   validation.
//! - `upgrade`: protocols that a request may switch to.
//! - `hop_by_hop`, `trailers`, `header_spelling`: fields that are not forwarded, in every spelling.
//! - `forwarded_for`, `forwarded_headers`, `forwarded_certificate`, `user`: the client, as proxies announce it and
//!   as upstreams receive it.
//! - `envoy_headers`, `request_id`: `X-Envoy-*` and `X-Request-Id`.
//! - `request_view`, `dynamic_metadata`: the request as routes and access steps see it; `accept`: q-values; `credentials`:
//!   cookies and passwords.

pub(super) mod accept;
pub(super) mod authority;
pub(super) mod credentials;
pub(super) mod dynamic_metadata;
pub(super) mod envoy_headers;
pub(super) mod forwarded_certificate;
pub(super) mod forwarded_for;
pub(super) mod forwarded_headers;
pub(super) mod header_spelling;
pub(super) mod hop_by_hop;
pub(super) mod http3_head;
pub(super) mod path_normalization;
pub(super) mod request_id;
pub(super) mod request_view;
pub(super) mod trailers;
pub(super) mod upgrade;
pub(super) mod user;

use authority::Authority;
use credentials::Credentials;
use dynamic_metadata::Metadata;
use forwarded_for::Sender;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Uri, Version,
    uri::{PathAndQuery, Scheme},
};
use quadrille_config::model::{Paths, SentPath, StripPort};
use request_view::RequestView;
use user::User;

/// A client's request.
#[derive(Clone)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    /// Effective authority, used alike by all steps.
    pub(super) authority: Option<Authority>,
    /// Reason why the request cannot be routed: a status, and a text for the client.
    pub(super) malformed: Option<(u16, &'static str)>,
    /// Path and query as received, if they are forwarded and differ from the ones that routes see.
    received: Option<PathAndQuery>,
    /// Whether the request opens a WebSocket (RFC 6455, RFC 8441, RFC 9220).
    pub(super) websocket: bool,
    /// Another protocol that the request switches to: over HTTP/1.1 once its route allows that, over HTTP/2 and HTTP/3
    /// from the beginning (RFC 8441).
    pub(super) upgrade: Option<HeaderValue>,
    /// Whether the request was received as early data (RFC 8470).
    pub(super) early: bool,
    /// The client, and the handling of forwarding headers from the peer.
    pub(super) sender: Sender,
    /// Metadata from access steps.
    pub(super) metadata: Metadata,
    /// Headers to add to the response.
    pub(super) response_headers: HeaderMap,
    /// User that was authenticated with a password.
    pub(super) user: Option<User>,
    /// Meaning of its `x-envoy-*` headers.
    pub(super) envoy_headers: envoy_headers::Use,
    /// Whether its `x-forwarded-client-cert` is set for upstreams.
    pub(super) tells_certificate: bool,
    /// Whether the forwarding headers are set already.
    forwarded_is_set: bool,
    /// Headers that access steps set or remove; trailers must not have these names.
    pub(super) owned_headers: Vec<HeaderName>,
    /// The credentials that the request had, even if they are not forwarded.
    pub(super) credentials: Credentials,
}

/// The path of a request is invalid.
pub(super) struct InvalidPath;

impl Request {
    /// Returns whether the connection multiplexes requests: HTTP/2 or HTTP/3.
    pub(super) fn is_multiplexed(&self) -> bool {
        self.version >= Version::HTTP_2
    }

    /// Returns whether the request opens a tunnel.
    pub(super) fn is_upgrade(&self) -> bool {
        self.websocket || self.upgrade.is_some()
    }

    /// Returns whether the bytes after the header belong to another protocol, so that they are not a body.
    pub(super) fn body_is_tunnel(&self) -> bool {
        self.websocket || self.upgrade.is_some() && self.is_multiplexed()
    }

    /// Returns the view of the request for routes.
    pub(super) fn view(&self, tls: bool) -> RequestView<'_> {
        RequestView {
            authority: self.host(),
            method: self.method.as_str(),
            path: self.uri.path(),
            query: self.uri.query(),
            headers: &self.headers,
            tls,
        }
    }

    /// Returns the effective authority; empty if absent.
    pub(super) fn host(&self) -> &str {
        self.authority.as_ref().map_or("", Authority::as_str)
    }

    /// Removes the port of the host if configured for requests on this port.
    pub(super) fn strip_port(&mut self, which: StripPort, own: u16) {
        let only = match which {
            StripPort::Never => return,
            StripPort::Own => Some(own),
            StripPort::Always => None,
        };
        if let Some(authority) = &mut self.authority {
            authority.strip_port(only);
        }
    }

    /// Normalizes the path for routes.
    ///
    /// # Errors
    /// Returns the text for the client if the path is rejected.
    pub(super) fn normalize(&mut self, paths: &Paths) -> Result<(), &'static str> {
        if self.uri.path() == WHOLE_SERVER {
            return Ok(());
        }
        // In absolute form, the path before the query may be empty.
        let rootless = self.uri.path_and_query().is_some_and(|path| path.as_str().starts_with('?'));
        match path_normalization::normalized(self.uri.path(), paths)? {
            Some(path) => self.replace_path(&path, paths.send),
            None if rootless => self.replace_path("/", SentPath::Normalized),
            None => Ok(()),
        }
    }

    fn replace_path(&mut self, path: &str, send: SentPath) -> Result<(), &'static str> {
        const INVALID: &str = "The request path is invalid.\n";
        let path = with_query(path, self.uri.query()).map_err(|_| INVALID)?;
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        self.received = parts.path_and_query.replace(path).filter(|_| send == SentPath::Received);
        self.uri = Uri::from_parts(parts).map_err(|_| INVALID)?;
        Ok(())
    }

    /// Changes the query, for routes and upstreams alike; an empty query is removed.
    pub(super) fn change_query(&mut self, change: &dyn Fn(&str) -> String) {
        let changed = |path: &PathAndQuery| {
            let query = path.query().map(change).filter(|query| !query.is_empty());
            with_query(path.path(), query.as_deref()).unwrap_or_else(|_| path.clone())
        };
        self.received = self.received.as_ref().map(changed);
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        parts.path_and_query = parts.path_and_query.as_ref().map(changed);
        // Only the query differs.
        self.uri = Uri::from_parts(parts).unwrap_or_default();
    }

    /// Returns the path and query for the upstream, unless the route rewrites them.
    pub(super) fn sent_path(&self) -> PathAndQuery {
        let sent = self.received.as_ref().or(self.uri.path_and_query());
        sent.cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
    }
}

/// Combines a path with this query, unless the path has its own.
pub(super) fn with_query(path: &str, query: Option<&str>) -> Result<PathAndQuery, InvalidPath> {
    let root = if path.starts_with('/') { "" } else { "/" };
    let query = query.filter(|_| !path.contains('?')).map(|query| format!("?{query}")).unwrap_or_default();
    format!("{root}{path}{query}").parse().map_err(|_| InvalidPath)
}

/// Target of a server-wide `OPTIONS` (RFC 9112 section 3.2.4).
const WHOLE_SERVER: &str = "*";

/// Checks that the form of the target is supported (RFC 9112 section 3.2), and that CONNECT is only used with a
/// protocol (RFC 8441 section 4). The `http` crate parses the target of `GET admin` as a host.
fn check_target(method: &Method, target: &Uri, extended: bool) -> Result<(), (u16, &'static str)> {
    let served = target.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    let path = target.path();
    let whole_server = path == WHOLE_SERVER && method == Method::OPTIONS;
    if !served || !path.starts_with('/') && !whole_server {
        Err((400, "The request target is invalid.\n"))
    } else if method == Method::CONNECT && !extended {
        Err((501, "CONNECT tunnels are not supported.\n"))
    } else {
        Ok(())
    }
}

/// Converts a request from the `http` crate; `early` and `sender` describe the connection.
pub(crate) fn split<B>(request: http::Request<B>, early: bool, sender: Sender) -> (Request, B) {
    let (mut parts, body) = request.into_parts();
    let protocol = parts.extensions.get::<h2::ext::Protocol>();
    let protocol = protocol.filter(|_| parts.version >= Version::HTTP_2 && parts.method == Method::CONNECT);
    let websocket = match parts.version {
        Version::HTTP_2 | Version::HTTP_3 => {
            protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
        }
        Version::HTTP_11 => parts.method == Method::GET && hop_by_hop::asks_for_websocket(&parts.headers),
        // HTTP/1.0 has no upgrades (RFC 9110 section 7.8).
        _ => false,
    };
    let upgrade = protocol.filter(|_| !websocket).map(|protocol| HeaderValue::from_str(protocol.as_str()));
    let upgrade = upgrade.and_then(Result::ok);
    let tunnels = websocket || upgrade.is_some();
    let authority = authority::effective(&parts.uri, &parts.headers, parts.version);
    let target = check_target(&parts.method, &parts.uri, tunnels);
    let malformed = target.err().or(authority.as_ref().err().map(|problem| (400, *problem)));
    if tunnels {
        // Upstreams receive a GET, and rules apply to the upstream request.
        parts.method = Method::GET;
    }
    // Must precede the addition of headers that a client must not remove (RFC 9110 section 7.6.1).
    hop_by_hop::remove_named(&mut parts.headers);
    let credentials = Credentials::of(&parts.headers);
    let request = Request {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        version: parts.version,
        authority: authority.unwrap_or_default(),
        malformed,
        received: None,
        websocket,
        upgrade,
        early,
        sender,
        metadata: Metadata::default(),
        response_headers: HeaderMap::new(),
        user: None,
        envoy_headers: envoy_headers::Use::Unknown,
        tells_certificate: false,
        forwarded_is_set: false,
        owned_headers: Vec::new(),
        credentials,
    };
    (request, body)
}
