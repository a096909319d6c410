//! A request as it came, and as it goes on.

use super::{
    authority::{self, Authority},
    client_body::ClientBody,
    request_view::RequestView,
    rewrite,
};
use http::{HeaderMap, Method, Uri, Version, uri::PathAndQuery};

/// A request of a client.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    /// For which host it is, as everybody sees it who asks.
    pub(super) authority: Option<Authority>,
    /// What makes it no request that may be routed, for the client to read.
    pub(super) malformed: Option<&'static str>,
    /// It asks for the WebSocket protocol (RFC 6455, RFC 8441).
    pub(super) websocket: bool,
    /// It came before the handshake was complete (RFC 8470).
    pub(super) early: bool,
}

/// What makes a request impossible to route.
pub(super) struct InvalidPath;

impl Request {
    pub(super) fn is_http2(&self) -> bool {
        self.version == Version::HTTP_2
    }

    /// As routes see it.
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

    /// The effective authority, empty if there is none.
    pub(super) fn host(&self) -> &str {
        self.authority.as_ref().map_or("", Authority::as_str)
    }

    /// Takes `.` and `..`, and doubled slashes, out of the path.
    pub(super) fn normalize(&mut self, dots: bool, slashes: bool) -> Result<(), InvalidPath> {
        let Some(path) = rewrite::normalized(self.uri.path(), dots, slashes) else { return Ok(()) };
        let path = with_query(&path, self.uri.query())?;
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        parts.path_and_query = Some(path);
        self.uri = Uri::from_parts(parts).map_err(|_| InvalidPath)?;
        Ok(())
    }
}

/// A path with this query, unless the path brings its own.
pub(super) fn with_query(path: &str, query: Option<&str>) -> Result<PathAndQuery, InvalidPath> {
    let root = if path.starts_with('/') { "" } else { "/" };
    let query = query.filter(|_| !path.contains('?')).map(|query| format!("?{query}")).unwrap_or_default();
    format!("{root}{path}{query}").parse().map_err(|_| InvalidPath)
}

/// A request from the library's form; `early` as of the connection.
pub(super) fn split(request: http::Request<ClientBody>, early: bool) -> (Request, ClientBody) {
    let (parts, body) = request.into_parts();
    let protocol = parts.extensions.get::<h2::ext::Protocol>();
    let websocket = match parts.version {
        Version::HTTP_2 => protocol.is_some_and(|protocol| protocol.as_str() == "websocket"),
        Version::HTTP_11 => {
            parts.method == Method::GET && super::hop_by_hop::asks_for_websocket(&parts.headers)
        }
        // HTTP/1.0 has no upgrades (RFC 9110 section 7.8).
        _ => false,
    };
    let authority = authority::effective(&parts.uri, &parts.headers, parts.version);
    let malformed = authority.as_ref().err().copied();
    let request = Request {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        version: parts.version,
        authority: authority.unwrap_or_default(),
        malformed,
        websocket,
        early,
    };
    (request, body)
}
