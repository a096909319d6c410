use super::{
    AccessRules, AttemptCounts, Compression, CookieMatch, Cors, ErrorPage, Fault, HashPolicy, HeaderChange,
    HeaderMatch, Mirror, PathMatch, PathRewrite, Place, QueryMatch, Redirect, Respond, RetryPolicy,
    RouteAuthorization, RouteBasicAuth, RouteBodyLimit, RouteDescriptors, RouteJwt, RouteRateLimits,
    RouteTracing, Upgrades,
};
use http::Method;
use std::{
    num::{NonZeroU32, NonZeroUsize},
    sync::Arc,
    time::Duration,
};

/// A route: conditions on requests, all of which must hold, and an action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The name, for logs and statistics; may be empty.
    pub name: String,
    /// The condition on the path.
    pub path: PathMatch,
    /// Whether [`by_weight`](super::RouteTable::by_weight) places the route before regular expressions, although its
    /// path is a prefix.
    pub before_regex: bool,
    /// The methods; empty for any method.
    pub methods: Vec<Method>,
    /// Conditions on headers.
    pub headers: Vec<HeaderMatch>,
    /// Conditions on query parameters.
    pub query: Vec<QueryMatch>,
    /// Conditions on cookies.
    pub cookies: Vec<CookieMatch>,
    /// Rules that matching requests must pass, after those of the chain. They see the client and its certificate.
    pub access: Vec<AccessRules>,
    /// The action for a matching request.
    pub action: Action,
    /// Changes to requests that go upstream, in this order.
    pub request_headers: Vec<HeaderChange>,
    /// Changes to every response, in this order.
    pub response_headers: Vec<HeaderChange>,
    /// Access for pages of other origins; `None` for no CORS handling.
    pub cors: Option<Cors>,
    /// Fault injection.
    pub fault: Option<Fault>,
    /// Rate limits.
    pub rate_limits: RouteRateLimits,
    /// Descriptors for rate limit services; `None` for no descriptors.
    pub descriptors: Option<Arc<RouteDescriptors>>,
    /// Limit on the size of a request's body.
    pub body_limit: RouteBodyLimit,
    /// Maximum number of active requests of a client: of an IPv4 address, or an IPv6 network of 64 bits. Further ones
    /// receive a 429 response.
    pub active_per_client: Option<NonZeroUsize>,
    /// HTTP Basic authentication.
    pub basic_auth: RouteBasicAuth,
    /// Tokens that requests need.
    pub jwt: RouteJwt,
    /// External authorization.
    pub authorization: RouteAuthorization,
    /// Compression of servers' responses.
    pub compression: Option<Arc<Compression>>,
    /// Error pages, which precede those of the chain.
    pub error_pages: Vec<ErrorPage>,
    /// Tracing settings.
    pub tracing: Option<Arc<RouteTracing>>,
    /// Share of requests that the access log has, in parts per million; `None` for all.
    pub logged_parts: Option<u32>,
    /// The place of the route in the configuration.
    pub place: Place,
}

/// The action for a matching request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Forwards the request upstream.
    Forward(Box<Forward>),
    /// Redirects the client.
    Redirect(Box<Redirect>),
    /// Sends a fixed response.
    Respond(Respond),
}

/// Settings of forwarding.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Forward {
    /// The upstreams, one of which is chosen at random by weight. Requests to an upstream that does not exist receive
    /// a 503 response.
    pub to: Vec<Weighted>,
    /// The path that is sent to the server.
    pub rewrite: Option<PathRewrite>,
    /// The host that is sent to the server.
    pub host: Option<HostRewrite>,
    /// Time from the end of the request to the end of its response, all attempts together; `None` for no limit. Not
    /// for upgrades.
    pub timeout: Option<Duration>,
    /// Time without a byte in either direction, instead of the upstream's own `read` and `write`.
    pub idle: Option<Duration>,
    /// The retry policy; `None`: that of the upstream ([`super::Upstream::retries`]).
    pub retry: Option<RetryPolicy>,
    /// Hash keys that select a server; requests without any of them go to any server.
    pub hash: Vec<HashPolicy>,
    /// Upstreams that receive copies of requests.
    pub mirrors: Vec<Mirror>,
    /// Whether trailers of requests are forwarded over HTTP/1.1; over HTTP/2 they always are.
    pub request_trailers: bool,
    /// Messages that carry the number of attempts.
    pub attempts: AttemptCounts,
    /// Protocols that requests may switch to; for others, the setting of the chain applies.
    pub upgrades: Upgrades,
}

/// A share of the requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Weighted {
    /// Name of an upstream.
    pub upstream: String,
    /// The weight, relative to the others.
    pub weight: NonZeroU32,
    /// Changes to requests to this upstream, before the route's own.
    pub request_headers: Vec<HeaderChange>,
    /// Changes to responses from this upstream, before the route's own.
    pub response_headers: Vec<HeaderChange>,
}

/// The host that is sent to a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HostRewrite {
    /// This host.
    Literal(String),
    /// The server's own host, as it was written.
    Server,
    /// The value of this request header, if present.
    Header(String),
}

impl Route {
    /// Returns a route for these paths, with default settings.
    pub fn new(path: PathMatch, action: Action, place: Place) -> Self {
        Self {
            name: String::new(),
            path,
            before_regex: false,
            methods: Vec::new(),
            headers: Vec::new(),
            query: Vec::new(),
            cookies: Vec::new(),
            access: Vec::new(),
            action,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            cors: None,
            fault: None,
            rate_limits: RouteRateLimits::default(),
            descriptors: None,
            body_limit: RouteBodyLimit::default(),
            active_per_client: None,
            basic_auth: RouteBasicAuth::default(),
            jwt: RouteJwt::default(),
            authorization: RouteAuthorization::default(),
            compression: None,
            error_pages: Vec::new(),
            tracing: None,
            logged_parts: None,
            place,
        }
    }
}

impl Forward {
    /// Returns default settings for this upstream: its own timeouts and retries, and no time limit for the whole
    /// request.
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
            request_trailers: false,
            attempts: AttemptCounts::default(),
            upgrades: Upgrades::default(),
        }
    }
}

impl Weighted {
    /// Returns a single target for all requests.
    pub fn all(upstream: impl Into<String>) -> Self {
        Self {
            upstream: upstream.into(),
            weight: NonZeroU32::MIN,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
        }
    }
}
