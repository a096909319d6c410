//! A request as it came, and as it goes on.

use super::{
    authority::{self, Authority},
    envoy_headers,
    forwarded_for::Sender,
    hop_by_hop,
    metadata::Metadata,
    path_normalization,
    request_view::RequestView,
    user::User,
};
use http::{
    HeaderMap, Method, Uri, Version, header,
    uri::{PathAndQuery, Scheme},
};
use quadrille_config::model::{Paths, SentPath, StripPort};

/// A request of a client.
#[derive(Clone)]
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) version: Version,
    /// For which host it is, as everybody sees it who asks.
    pub(super) authority: Option<Authority>,
    /// What makes it no request that may be routed: a status, and a text for the client to read.
    pub(super) malformed: Option<(u16, &'static str)>,
    /// Path and query as they came, if a server is to get them and routes see others.
    received: Option<PathAndQuery>,
    /// It asks for the WebSocket protocol (RFC 6455, RFC 8441, RFC 9220).
    pub(super) websocket: bool,
    /// It came before the handshake was complete (RFC 8470).
    pub(super) early: bool,
    /// For whom the peer speaks, and what becomes of what it says of that.
    pub(super) sender: Sender,
    /// What was found out about it.
    pub(super) metadata: Metadata,
    /// Headers for whoever gets the answer.
    pub(super) answer_headers: HeaderMap,
    /// Who it is from, by name and password.
    pub(super) user: Option<User>,
    /// What its `x-envoy-*` mean.
    pub(super) envoy_headers: envoy_headers::Use,
    /// Its `x-forwarded-client-cert` is what servers are to be told.
    pub(super) tells_certificate: bool,
    /// It came with a cookie or a password, whether these go on or not.
    pub(super) has_credentials: bool,
}

/// What makes a request impossible to route.
pub(super) struct InvalidPath;

impl Request {
    /// Whether its connection has several requests at a time: HTTP/2 or HTTP/3.
    pub(super) fn is_multiplexed(&self) -> bool {
        self.version >= Version::HTTP_2
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

    /// Removes the port of its host, if that is wanted of requests that come on this port.
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

    /// Gives the path the form that routes see.
    ///
    /// # Errors
    /// Says for the client why it has none.
    pub(super) fn normalize(&mut self, paths: &Paths) -> Result<(), &'static str> {
        if self.uri.path() == WHOLE_SERVER {
            return Ok(());
        }
        // An absolute form need not have a path in front of its query.
        let rootless = self.uri.path_and_query().is_some_and(|path| path.as_str().starts_with('?'));
        match path_normalization::normalized(self.uri.path(), paths)? {
            Some(path) => self.replace_path(&path, paths.send),
            None if rootless => self.replace_path("/", SentPath::Normalized),
            None => Ok(()),
        }
    }

    fn replace_path(&mut self, path: &str, send: SentPath) -> Result<(), &'static str> {
        const INVALID: &str = "The path is none.\n";
        let path = with_query(path, self.uri.query()).map_err(|_| INVALID)?;
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        self.received = parts.path_and_query.replace(path).filter(|_| send == SentPath::Received);
        self.uri = Uri::from_parts(parts).map_err(|_| INVALID)?;
        Ok(())
    }

    /// Makes another query of the one that there is, for routes and servers alike; an empty one is none.
    pub(super) fn change_query(&mut self, change: &dyn Fn(&str) -> String) {
        let changed = |path: &PathAndQuery| {
            let query = path.query().map(change).filter(|query| !query.is_empty());
            with_query(path.path(), query.as_deref()).unwrap_or_else(|_| path.clone())
        };
        self.received = self.received.as_ref().map(changed);
        let mut parts = std::mem::take(&mut self.uri).into_parts();
        parts.path_and_query = parts.path_and_query.as_ref().map(changed);
        // Only the query is another one.
        self.uri = Uri::from_parts(parts).unwrap_or_default();
    }

    /// The path and query for a server, unless the route rewrites them.
    pub(super) fn sent_path(&self) -> PathAndQuery {
        let sent = self.received.as_ref().or(self.uri.path_and_query());
        sent.cloned().unwrap_or_else(|| PathAndQuery::from_static("/"))
    }
}

/// A path with this query, unless the path brings its own.
pub(super) fn with_query(path: &str, query: Option<&str>) -> Result<PathAndQuery, InvalidPath> {
    let root = if path.starts_with('/') { "" } else { "/" };
    let query = query.filter(|_| !path.contains('?')).map(|query| format!("?{query}")).unwrap_or_default();
    format!("{root}{path}{query}").parse().map_err(|_| InvalidPath)
}

/// What `OPTIONS` asks about if it means no path (RFC 9112 section 3.2.4).
const WHOLE_SERVER: &str = "*";

/// Whether the target has a form that is served (RFC 9112 section 3.2), and the method is one: a tunnel is none, but for
/// WebSocket (RFC 9220 section 3). The library takes `GET admin` for a host.
fn check_target(method: &Method, target: &Uri, websocket: bool) -> Result<(), (u16, &'static str)> {
    let served = target.scheme().is_none_or(|scheme| *scheme == Scheme::HTTP || *scheme == Scheme::HTTPS);
    let path = target.path();
    let whole_server = path == WHOLE_SERVER && method == Method::OPTIONS;
    if !served || !path.starts_with('/') && !whole_server {
        Err((400, "The request's target is none.\n"))
    } else if method == Method::CONNECT && !websocket {
        Err((501, "There are no such tunnels here.\n"))
    } else {
        Ok(())
    }
}

/// A request from the library's form; `early` and `sender` as of the connection.
pub(super) fn split<B>(request: http::Request<B>, early: bool, sender: Sender) -> (Request, B) {
    let (mut parts, body) = request.into_parts();
    let protocol = parts.extensions.get::<h2::ext::Protocol>();
    let websocket = match parts.version {
        Version::HTTP_2 | Version::HTTP_3 => {
            protocol.is_some_and(|protocol| protocol.as_str() == "websocket")
        }
        Version::HTTP_11 => parts.method == Method::GET && hop_by_hop::asks_for_websocket(&parts.headers),
        // HTTP/1.0 has no upgrades (RFC 9110 section 7.8).
        _ => false,
    };
    let authority = authority::effective(&parts.uri, &parts.headers, parts.version);
    let target = check_target(&parts.method, &parts.uri, websocket);
    let malformed = target.err().or(authority.as_ref().err().map(|problem| (400, *problem)));
    if websocket {
        // Servers get a GET, and rules are about what servers get.
        parts.method = Method::GET;
    }
    // Before anything is added that a client must not have removed (RFC 9110 section 7.6.1).
    hop_by_hop::remove_named(&mut parts.headers);
    let has_credentials =
        [header::COOKIE, header::AUTHORIZATION].iter().any(|name| parts.headers.contains_key(name));
    let request = Request {
        method: parts.method,
        uri: parts.uri,
        headers: parts.headers,
        version: parts.version,
        authority: authority.unwrap_or_default(),
        malformed,
        received: None,
        websocket,
        early,
        sender,
        metadata: Metadata::default(),
        answer_headers: HeaderMap::new(),
        user: None,
        envoy_headers: envoy_headers::Use::Unknown,
        tells_certificate: false,
        has_credentials,
    };
    (request, body)
}
