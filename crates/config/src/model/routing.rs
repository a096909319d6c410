//! Which requests go where: hosts, then routes in their order.

use super::{
    AccessStep, BasicAuth, EnvoyHeaders, ErrorPage, ForwardedCertificate, HttpTracing, LocalReplies, Mode,
    PathRule, Paths, Place, RateLimit, RequestIds, RequestLimits, Route, RouteBasicAuth,
};
use http::HeaderName;
use std::{cmp::Reverse, collections::HashMap, fmt, sync::Arc};

/// HTTP of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Http {
    /// Which requests go where. Shared by chains with the same routes, and recognised if it has not changed.
    pub routes: Arc<RouteTable>,
    /// In which form paths are matched and sent on.
    pub paths: Paths,
    /// Who may ask for what: asked before routes are looked at. What may not be asked for is answered with 403, with 401
    /// where a token or a password is needed, and with 429 where it is too much.
    pub access: Vec<AccessStep>,
    /// How large requests may be.
    pub limits: RequestLimits,
    /// What clients read of errors.
    pub error_pages: Vec<ErrorPage>,
    /// How the gateway's own answers are written, in the place of `error_pages`; Envoy's. Shared by their connections.
    pub local_replies: Option<Arc<LocalReplies>>,
    /// What becomes of `X-Request-Id`; `None`: what the process says.
    pub request_ids: Option<RequestIds>,
    /// What becomes of `x-forwarded-client-cert`.
    pub forwarded_certificate: ForwardedCertificate,
    /// What becomes of `x-envoy-*`; `None`: they mean nothing.
    pub envoy_headers: Option<EnvoyHeaders>,
    /// Which requests are traced, in the place of what the process says.
    pub tracing: Option<Arc<HttpTracing>>,
    /// Whether requests lose the port of their host before anything looks at it.
    pub strip_port: StripPort,
    /// Whether WebSockets go upstream, where a route says nothing of them.
    pub websocket: bool,
}

/// Whether the port is removed from the host of a request, for rules, routes and servers alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum StripPort {
    /// It stays.
    #[default]
    Never,
    /// If it is the one on which the request came. Envoy: `strip_matching_host_port`.
    Own,
    /// Whatever it is. Envoy: `strip_any_host_port`.
    Always,
}

/// A set of hosts with their routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct RouteTable {
    /// For logs and statistics; may be empty.
    pub name: String,
    /// Hosts; no domain may be there twice.
    pub hosts: Vec<VirtualHost>,
    /// A request for which its host has no route is tried with the next less specific host. Envoy: `false`.
    pub fall_through: bool,
    /// Domains are compared with the host together with its port, if it has one. Envoy: `true` unless
    /// `ignore_port_in_host_matching`.
    pub match_port: bool,
    /// A server that cannot be reached, or closes the connection without an answer, is answered for with 503 in place
    /// of 502. Envoy: `true`.
    pub unreachable_is_503: bool,
    /// Headers of requests that only internal clients may send; see [`EnvoyHeaders`].
    pub internal_headers: Vec<HeaderName>,
}

/// Hosts with the same routes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VirtualHost {
    /// For logs and statistics; may be empty.
    pub name: String,
    /// For which hosts; at least one.
    pub domains: Vec<Domain>,
    /// The first that matches takes the request.
    pub routes: Vec<Route>,
    /// Requests without TLS are redirected to `https`.
    pub require_tls: bool,
    /// Where it was written.
    pub place: Place,
}

/// A host, or many. In lower case. Of those that match, exact ones come first, then the longest suffix, then the
/// longest prefix, then all. `Below` stands between exact ones and suffixes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// This one: `example.com`.
    Exact(String),
    /// Everything that ends like this, but is longer: `.example.com` for `*.example.com`; `-a.example` for
    /// `*-a.example`.
    Suffix(String),
    /// Whatever has one label more than this: `example.com` for `*.example.com` as certificates mean it.
    Below(String),
    /// Everything that begins like this, but is longer: `example.` for `example.*`.
    Prefix(String),
    /// Every host.
    Any,
}

impl Domain {
    /// As Envoy writes it: `example.com`, `*.example.com`, `example.*`, `*`.
    pub fn wildcard(text: &str) -> Self {
        let text = text.to_ascii_lowercase();
        if text == "*" {
            return Self::Any;
        }
        match (text.strip_prefix('*'), text.strip_suffix('*')) {
            (Some(suffix), _) => Self::Suffix(suffix.to_owned()),
            (_, Some(prefix)) => Self::Prefix(prefix.to_owned()),
            _ => Self::Exact(text),
        }
    }
}

impl Http {
    /// These routes, and everything else as it is when nothing is said.
    pub fn new(routes: impl Into<Arc<RouteTable>>) -> Self {
        Self {
            routes: routes.into(),
            paths: Paths::default(),
            access: Vec::new(),
            limits: RequestLimits::default(),
            error_pages: Vec::new(),
            local_replies: None,
            request_ids: None,
            forwarded_certificate: ForwardedCertificate::default(),
            envoy_headers: None,
            tracing: None,
            strip_port: StripPort::default(),
            websocket: true,
        }
    }
}

impl Http {
    /// All pages for errors, of the chain and of its routes.
    pub fn all_error_pages(&self) -> impl Iterator<Item = &ErrorPage> {
        let routes = self.routes.hosts.iter().flat_map(|host| &host.routes);
        self.error_pages.iter().chain(routes.flat_map(|route| &route.error_pages))
    }

    /// All users with passwords, of the chain and of its routes.
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
    /// The limits of all routes.
    pub fn rate_limits(&self) -> impl Iterator<Item = &RateLimit> {
        let routes = self.hosts.iter().flat_map(|host| &host.routes);
        routes.flat_map(|route| route.rate_limits.limits())
    }

    /// The order in which these routes are written does not matter: an exact host comes before a wildcard and a
    /// wildcard before none, then exact paths come first, then regular expressions, then the longest prefix, then the
    /// one with the most conditions.
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
        PathRule::Regex(_) => (1, 0),
        PathRule::Segments(path) | PathRule::Prefix(path) => (2, path.len()),
    };
    (class, Reverse(length), Reverse(route.headers.len() + route.query.len()))
}

impl VirtualHost {
    /// These domains, with everything else as it is when nothing is said.
    pub fn new(domains: Vec<Domain>, routes: Vec<Route>, place: Place) -> Self {
        Self { name: String::new(), domains, routes, require_tls: false, place }
    }
}

/// As Envoy writes it, but that what is below a host is written like any suffix.
impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(host) => f.write_str(host),
            Self::Suffix(suffix) => write!(f, "*{suffix}"),
            Self::Below(parent) => write!(f, "*.{parent}"),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
            Self::Any => f.write_str("*"),
        }
    }
}

impl Mode {
    /// The ALPN protocols that are offered when nothing is said. In TCP mode only the upstream knows what it speaks.
    pub fn alpn(self) -> Vec<String> {
        match self {
            Self::Http => vec!["h2".into(), "http/1.1".into()],
            Self::Tcp => Vec::new(),
        }
    }
}
