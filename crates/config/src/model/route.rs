use super::{
    AttemptCounts, Compression, Cors, ErrorPage, Expression, Fault, HashPolicy, HeaderChange, HeaderMatch,
    Mirror, PathMatch, Place, QueryMatch, RetryPolicy, RouteBasicAuth, RouteBodyLimit, RouteDescriptors,
    RouteRateLimits, RouteTracing,
};
use bytes::Bytes;
use std::{num::NonZeroU32, sync::Arc, time::Duration};

/// Which requests go where. All conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// For logs and statistics; may be empty.
    pub name: String,
    /// On the path.
    pub path: PathMatch,
    /// On headers.
    pub headers: Vec<HeaderMatch>,
    /// On parameters of the query.
    pub query: Vec<QueryMatch>,
    /// What becomes of a matching request.
    pub action: Action,
    /// Done to requests that go upstream, in this order.
    pub request_headers: Vec<HeaderChange>,
    /// Done to every answer, in this order.
    pub response_headers: Vec<HeaderChange>,
    /// What pages of other origins may do; `None` says nothing of it.
    pub cors: Option<Cors>,
    /// What is done to some requests on purpose.
    pub fault: Option<Fault>,
    /// How many requests are served in a time.
    pub rate_limits: RouteRateLimits,
    /// What services that limit rates are told of a request; `None` is nothing.
    pub descriptors: Option<Arc<RouteDescriptors>>,
    /// How large a request's body may be.
    pub body_limit: RouteBodyLimit,
    /// Who is let in by name and password.
    pub basic_auth: RouteBasicAuth,
    /// Which answers of servers are compressed.
    pub compression: Option<Arc<Compression>>,
    /// What clients read of errors, before what the chain has for them.
    pub error_pages: Vec<ErrorPage>,
    /// What is said of traces.
    pub tracing: Option<Arc<RouteTracing>>,
    /// Where the route was written.
    pub place: Place,
}

/// What becomes of a matching request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// It goes upstream.
    Forward(Box<Forward>),
    /// The client is sent elsewhere.
    Redirect(Box<Redirect>),
    /// A fixed answer.
    Respond(Respond),
}

/// How requests go upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// One of these, at random by weight. Requests to an upstream that does not exist are answered with 503.
    pub to: Vec<Weighted>,
    /// The path that the server sees.
    pub rewrite: Option<PathRewrite>,
    /// The host that the server sees.
    pub host: Option<HostRewrite>,
    /// From the whole request to the end of its answer, all attempts together; `None` has no limit. Not for upgrades.
    pub timeout: Option<Duration>,
    /// Without a byte in either direction, instead of the upstream's own `read` and `write`.
    pub idle: Option<Duration>,
    /// Which failures are tried again; `None`: as the upstream says ([`super::Upstream::retries`]).
    pub retry: Option<RetryPolicy>,
    /// By what requests keep to a server; those without any of it go to any server.
    pub hash: Vec<HashPolicy>,
    /// Who gets copies of requests.
    pub mirrors: Vec<Mirror>,
    /// Who is told how often a request was sent.
    pub attempts: AttemptCounts,
    /// Whether WebSockets go upstream; `None`: as the chain says.
    pub websocket: Option<bool>,
}

/// A share of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weighted {
    /// Name of an upstream.
    pub upstream: String,
    /// Relative to the others.
    pub weight: NonZeroU32,
    /// Done to requests that go there, before the route's own.
    pub request_headers: Vec<HeaderChange>,
    /// Done to answers from there, before the route's own.
    pub response_headers: Vec<HeaderChange>,
}

/// The path that a server sees, or that a client is redirected to. The query stays.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathRewrite {
    /// What the route's prefix has matched (with an exact path: all of it) becomes this. Not for regular expressions.
    Prefix(String),
    /// Every match of the expression becomes the text, in which `$1` or `${1}` is the first group.
    Regex(Expression, String),
    /// All of it becomes this. In a redirect it may bring a query of its own.
    Full(String),
}

/// The host that a server sees.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostRewrite {
    /// This one.
    Literal(String),
    /// The server's own host, as it was written.
    Server,
    /// What this header of the request says, if it is there.
    Header(String),
}

/// Where a client is sent. What is `None` stays as it was in the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// `https` or `http`.
    pub scheme: Option<String>,
    /// Without a port.
    pub host: Option<String>,
    /// If `None` and the scheme changes, a port that is the old scheme's default goes.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<PathRewrite>,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Leave the query out.
    pub strip_query: bool,
}

/// A fixed answer, without an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Respond {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type` of the body.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

impl Route {
    /// A route for these paths, with everything else as it is when nothing is said.
    pub fn new(path: PathMatch, action: Action, place: Place) -> Self {
        Self {
            name: String::new(),
            path,
            headers: Vec::new(),
            query: Vec::new(),
            action,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            cors: None,
            fault: None,
            rate_limits: RouteRateLimits::default(),
            descriptors: None,
            body_limit: RouteBodyLimit::default(),
            basic_auth: RouteBasicAuth::default(),
            compression: None,
            error_pages: Vec::new(),
            tracing: None,
            place,
        }
    }
}

impl Forward {
    /// To this upstream, as it is when nothing is said: the upstream's own timeouts and retries, and no limit on the
    /// whole.
    pub fn to(upstream: impl Into<String>) -> Self {
        Self {
            to: vec![Weighted::all(upstream)],
            rewrite: None,
            host: None,
            timeout: None,
            idle: None,
            retry: None,
            hash: Vec::new(),
            mirrors: Vec::new(),
            attempts: AttemptCounts::default(),
            websocket: None,
        }
    }
}

impl Weighted {
    /// The only one.
    pub fn all(upstream: impl Into<String>) -> Self {
        Self {
            upstream: upstream.into(),
            weight: NonZeroU32::MIN,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
        }
    }
}

impl Redirect {
    /// To the same place by `https`, for good.
    pub fn https() -> Self {
        let (scheme, host, port, path) = (Some("https".to_owned()), None, None, None);
        Self { scheme, host, port, path, status: 301, strip_query: false }
    }
}

impl Respond {
    /// This text, with status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self { status: 200, content_type: "text/plain; charset=utf-8".into(), body: body.into() }
    }
}
