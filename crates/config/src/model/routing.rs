//! Routing tables: virtual hosts, and their routes in order.

use super::{
    AccessStep, BasicAuth, Domain, EnvoyHeaders, ErrorPage, ForwardedCertificate, HeaderChange, HttpTracing,
    LocalReplies, Mode, PathRule, Paths, Place, RateLimit, RequestIds, RequestLimits, Route, RouteBasicAuth,
    Upgrades,
};
use http::HeaderName;
use std::{cmp::Reverse, collections::HashMap, sync::Arc};

/// HTTP settings of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Http {
    /// The route table. Shared by chains with the same routes, and recognized if it has not changed.
    pub routes: Arc<RouteTable>,
    /// Normalization of paths.
    pub paths: Paths,
    /// Access control, which precedes routing. A denied request receives a 403 response, or 401 if a token or a
    /// password is required, or 429 if a rate limit is exceeded.
    pub access: Vec<AccessStep>,
    /// Headers of requests that conditions read, and that the gateway sets.
    pub own_headers: Arc<OwnHeaders>,
    /// Limits on the size of requests.
    pub limits: RequestLimits,
    /// Changes to the headers of responses that no route applies to, such as those to invalid requests.
    pub response_headers: Vec<HeaderChange>,
    /// Error pages.
    pub error_pages: Vec<ErrorPage>,
    /// Format of the gateway's own responses, in place of `error_pages`; from Envoy. Shared by connections.
    pub local_replies: Option<Arc<LocalReplies>>,
    /// The handling of `X-Request-Id`; `None`: the setting of the process.
    pub request_ids: Option<RequestIds>,
    /// The handling of `x-forwarded-client-cert`.
    pub forwarded_certificate: ForwardedCertificate,
    /// The handling of `x-envoy-*`; `None`: they have no meaning.
    pub envoy_headers: Option<EnvoyHeaders>,
    /// Tracing, in place of the setting of the process.
    pub tracing: Option<Arc<HttpTracing>>,
    /// Whether the port is removed from the host of requests before any processing.
    pub strip_port: StripPort,
    /// Protocols that requests may switch to, unless a route decides about them.
    pub upgrades: Arc<Upgrades>,
    /// Whether an HTTP/1.1 request is aborted when its client closes its side of the connection.
    pub abort_on_close: bool,
}

/// Headers of requests that conditions read before and in routing, and the gateway's own values of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OwnHeaders {
    /// The headers that conditions read.
    pub read: Vec<HeaderName>,
    /// Changes that give such headers the gateway's own value, before any condition is evaluated.
    pub changes: Vec<HeaderChange>,
}

/// Whether the port is removed from the host of a request, for rules, routes and servers alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StripPort {
    /// Keep it.
    #[default]
    Never,
    /// Remove it if it is the port that received the request. Envoy: `strip_matching_host_port`.
    Own,
    /// Always remove it. Envoy: `strip_any_host_port`.
    Always,
}

/// A set of hosts with their routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteTable {
    /// The name, for logs and statistics; may be empty.
    pub name: String,
    /// Virtual hosts; a domain must not occur twice.
    pub hosts: Vec<VirtualHost>,
    /// Whether a request without a route of its host is tried with the next less specific host. Envoy: `false`.
    pub fall_through: bool,
    /// Whether domains are compared with the host including its port, if it has one. Envoy: `true` unless
    /// `ignore_port_in_host_matching`.
    pub match_port: bool,
    /// Whether the response is 503 instead of 502 if a server cannot be reached, or closes the connection without a
    /// response. Envoy: `true`.
    pub unreachable_is_503: bool,
    /// Headers of requests that only internal clients may send; see [`EnvoyHeaders`].
    pub internal_headers: Vec<HeaderName>,
}

/// Hosts with the same routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualHost {
    /// The name, for logs and statistics; may be empty.
    pub name: String,
    /// The domains; at least one.
    pub domains: Vec<Domain>,
    /// The routes; the first that matches a request applies.
    pub routes: Vec<Route>,
    /// Whether requests without TLS are redirected to `https`.
    pub require_tls: bool,
    /// The place in the configuration.
    pub place: Place,
}

impl Http {
    /// Returns settings with these routes, and defaults otherwise.
    pub fn new(routes: impl Into<Arc<RouteTable>>) -> Self {
        Self {
            routes: routes.into(),
            paths: Paths::default(),
            access: Vec::new(),
            own_headers: Arc::default(),
            limits: RequestLimits::default(),
            response_headers: Vec::new(),
            error_pages: Vec::new(),
            local_replies: None,
            request_ids: None,
            forwarded_certificate: ForwardedCertificate::default(),
            envoy_headers: None,
            tracing: None,
            strip_port: StripPort::default(),
            upgrades: Arc::default(),
            abort_on_close: false,
        }
    }
}

impl Http {
    /// Returns all error pages of the chain and of its routes.
    pub fn all_error_pages(&self) -> impl Iterator<Item = &ErrorPage> {
        let routes = self.routes.hosts.iter().flat_map(|host| &host.routes);
        self.error_pages.iter().chain(routes.flat_map(|route| &route.error_pages))
    }

    /// Returns all Basic authentication settings of the chain and of its routes.
    pub fn basic_auths(&self) -> impl Iterator<Item = &Arc<BasicAuth>> {
        let routes = self.routes.hosts.iter().flat_map(|host| &host.routes);
        let of_routes = routes.filter_map(|route| match &route.basic_auth {
            RouteBasicAuth::InPlace(users) => Some(users),
            RouteBasicAuth::OfChain | RouteBasicAuth::Off => None,
        });
        self.access.iter().filter_map(AccessStep::basic_auth).chain(of_routes)
    }
}

impl RouteTable {
    /// Returns the rate limits of all routes.
    pub fn rate_limits(&self) -> impl Iterator<Item = &RateLimit> {
        let routes = self.hosts.iter().flat_map(|host| &host.routes);
        routes.flat_map(|route| route.rate_limits.limits())
    }

    /// Makes a table of routes in any order: an exact host precedes a wildcard, and a wildcard precedes no host; then
    /// exact paths come first, then prefixes with `before_regex`, then regular expressions, then prefixes; of prefixes,
    /// the longest; then the one with the most conditions.
    pub fn by_weight(routes: impl IntoIterator<Item = (Domain, Route)>) -> Self {
        let mut hosts: Vec<VirtualHost> = Vec::new();
        let mut known = HashMap::new();
        for (domain, route) in routes {
            let at = *known.entry(domain.clone()).or_insert_with(|| {
                hosts.push(VirtualHost::new(vec![domain], Vec::new(), route.place.clone()));
                hosts.len() - 1
            });
            hosts[at].routes.push(route);
        }
        for host in &mut hosts {
            host.routes.sort_by_key(weight);
        }
        Self { hosts, fall_through: true, ..Self::default() }
    }
}

fn weight(route: &Route) -> (u8, Reverse<usize>, Reverse<usize>) {
    let (class, length) = match &route.path.rule {
        PathRule::Exact(path) => (0, path.len()),
        PathRule::Regex(_) => (2, 0),
        PathRule::Segments(path) | PathRule::Prefix(path) => {
            (if route.before_regex { 1 } else { 3 }, path.len())
        }
    };
    let methods = usize::from(!route.methods.is_empty());
    let conditions = methods + route.headers.len() + route.query.len() + route.cookies.len();
    (class, Reverse(length), Reverse(conditions))
}

impl VirtualHost {
    /// Returns a virtual host for these domains, with default settings.
    pub fn new(domains: Vec<Domain>, routes: Vec<Route>, place: Place) -> Self {
        Self { name: String::new(), domains, routes, require_tls: false, place }
    }
}

impl Mode {
    /// Returns the default ALPN protocols. In TCP mode they depend on the upstream.
    pub fn alpn(self) -> Vec<String> {
        match self {
            Self::Http => vec!["h2".into(), "http/1.1".into()],
            Self::Tcp => Vec::new(),
        }
    }
}
