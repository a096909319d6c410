//! Request routing: by host, then in the order of the host's routes.

use crate::{
    admission::{ClientPlace, ClientPlaces, TooMany},
    host_map::{HostMap, lower_case},
    http::{
        rate_limit::{Limiter, Limiters},
        request::request_view::RequestView,
    },
    upstream::{Upstream, Upstreams, WeightedUpstream, WeightedUpstreams},
};
use http::HeaderName;
use quadrille_config::model::{
    Action, Domain, Forward, HeaderChange, Place, Route, RouteRateLimits, RouteTable, VirtualHost,
};
use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

/// A routing table, prepared for lookups.
pub(crate) struct Router {
    table: Arc<RouteTable>,
    /// Exact names and wildcards; a wildcard stands for one label.
    names: HostMap<usize>,
    suffixes: Affixes,
    prefixes: Affixes,
    any: Option<usize>,
    /// Weighted upstreams, by host and route.
    weighted: Vec<Vec<WeightedUpstreams>>,
    /// Names of changed headers, by host and route.
    changed: Vec<Vec<ChangedHeaders>>,
    /// Rate limiters, by host and route.
    limiters: Vec<Vec<Box<[Arc<Limiter>]>>>,
    /// Active requests by client, by host and route; empty if no route limits them.
    active: Vec<Vec<Option<Arc<ClientPlaces>>>>,
    /// Whether any route has limits in place of its chain's limits.
    has_own_limits: bool,
    /// Mirrors, by host and route, in the order of the route's mirrors.
    mirrors: Vec<Vec<Mirrors>>,
    /// All upstreams that are named, as resolved when the router was built.
    named: Vec<(String, Option<Arc<Upstream>>)>,
}

/// The upstreams of a route's mirrors; `None` means that it does not exist (yet).
type Mirrors = Box<[Option<Arc<Upstream>>]>;

/// Names of headers that a route or one of its weighted upstreams changes; `None` without any.
#[derive(Default)]
pub(crate) struct ChangedHeaders {
    pub(crate) request: Option<Arc<[HeaderName]>>,
    pub(crate) response: Option<Arc<[HeaderName]>>,
}

/// Prefixes or suffixes of hosts, longest first. There are few distinct lengths, however many hosts there are.
#[derive(Default)]
struct Affixes {
    hosts: HashMap<String, usize>,
    lengths: Vec<usize>,
}

/// Result of a lookup.
pub(crate) enum RouteLookup {
    Route(MatchedRoute),
    /// The host requires TLS, and the request was received without it.
    NeedsTls,
}

/// A route in its table, which is kept alive while a request uses it.
#[derive(Clone)]
pub(crate) struct MatchedRoute {
    routes: Arc<Router>,
    host: usize,
    route: usize,
}

impl Router {
    /// Builds a router. Routes to upstreams that are not among `upstreams` respond with 503: they may be added later.
    pub(crate) fn new(table: &Arc<RouteTable>, upstreams: &Upstreams, limiters: &Limiters) -> Self {
        let mut routes = Self {
            table: Arc::clone(table),
            names: HostMap::default(),
            suffixes: Affixes::default(),
            prefixes: Affixes::default(),
            any: None,
            weighted: Vec::new(),
            changed: Vec::new(),
            limiters: Vec::new(),
            active: Vec::new(),
            has_own_limits: false,
            mirrors: Vec::new(),
            named: Vec::new(),
        };
        let mut named = BTreeSet::new();
        for (index, host) in table.hosts.iter().enumerate() {
            for domain in &host.domains {
                routes.insert(domain, index);
            }
            let forwards = || host.routes.iter().map(forward);
            named.extend(forwards().flatten().flat_map(|forward| &forward.to).map(|to| to.upstream.as_str()));
            let mirrors = |forward: &Forward| {
                let mirrors = forward.mirrors.iter();
                mirrors.map(|mirror| upstreams.get(&mirror.upstream).cloned()).collect()
            };
            routes.mirrors.push(forwards().map(|forward| forward.map(mirrors).unwrap_or_default()).collect());
            let copies = forwards().flatten().flat_map(|forward| &forward.mirrors);
            named.extend(copies.map(|mirror| mirror.upstream.as_str()));
            let weighted = |forward: Option<&Forward>| {
                forward.map(|forward| WeightedUpstreams::new(&forward.to, upstreams)).unwrap_or_default()
            };
            routes.weighted.push(forwards().map(weighted).collect());
            routes.changed.push(host.routes.iter().map(ChangedHeaders::of).collect());
            let limits = || host.routes.iter().map(|route| &route.rate_limits);
            routes.limiters.push(limits().map(|limits| limiters.of(limits.limits())).collect());
            routes.has_own_limits |= limits().any(|limits| matches!(limits, RouteRateLimits::InPlace(_)));
        }
        if table.hosts.iter().flat_map(|host| &host.routes).any(|route| route.active_per_client.is_some()) {
            let counts = |route: &Route| route.active_per_client.map(|most| ClientPlaces::new(Some(most)));
            routes.active = table.hosts.iter().map(|host| host.routes.iter().map(counts).collect()).collect();
        }
        routes.named =
            named.into_iter().map(|name| (name.to_owned(), upstreams.get(name).cloned())).collect();
        routes.suffixes.sort();
        routes.prefixes.sort();
        routes
    }

    /// Returns whether a router built from this table and these upstreams would be equal.
    pub(crate) fn is_made_of(&self, table: &Arc<RouteTable>, upstreams: &Upstreams) -> bool {
        let same = |(name, before): &(String, Option<Arc<Upstream>>)| match (before, upstreams.get(name)) {
            (Some(before), Some(now)) => Arc::ptr_eq(before, now),
            (None, None) => true,
            _ => false,
        };
        self.table == *table && self.named.iter().all(same)
    }

    /// Returns whether any route has limits in place of its chain's limits.
    pub(crate) fn has_own_limits(&self) -> bool {
        self.has_own_limits
    }

    pub(crate) fn table(&self) -> &Arc<RouteTable> {
        &self.table
    }

    /// Looks up the route of a request.
    pub(crate) fn find(self: &Arc<Self>, request: &RequestView<'_>) -> Option<RouteLookup> {
        let host = lower_case(request.host(self.table.match_port));
        for index in self.hosts(&host) {
            let virtual_host: &VirtualHost = &self.table.hosts[index];
            if virtual_host.require_tls && !request.tls {
                return Some(RouteLookup::NeedsTls);
            }
            if let Some(route) = virtual_host.routes.iter().position(|route| request.matches_route(route)) {
                return Some(RouteLookup::Route(MatchedRoute {
                    routes: Arc::clone(self),
                    host: index,
                    route,
                }));
            }
            if !self.table.fall_through {
                break;
            }
        }
        None
    }

    /// Iterates over the matching hosts, most specific first.
    pub(crate) fn hosts<'a>(&'a self, host: &'a str) -> impl Iterator<Item = usize> + 'a {
        let exact = self.names.exact(host).copied();
        let below = self.names.one_label_wildcard(host).copied();
        let suffixes = self.suffixes.matching(move |length| host.get(host.len().checked_sub(length)?..));
        let prefixes = self.prefixes.matching(move |length| host.get(..length));
        let longer = move |(length, index): (usize, usize)| (host.len() > length).then_some(index);
        let affixes = suffixes.chain(prefixes).filter_map(longer);
        exact.into_iter().chain(below).chain(affixes).chain(self.any)
    }

    /// Adds a domain. Of two hosts with the same domain, the first takes precedence.
    fn insert(&mut self, domain: &Domain, index: usize) {
        match domain {
            Domain::Exact(host) => self.names.insert_first(host, index),
            Domain::Below(parent) => self.names.insert_first(&format!("*.{parent}"), index),
            Domain::Suffix(suffix) => _ = self.suffixes.hosts.entry(suffix.clone()).or_insert(index),
            Domain::Prefix(prefix) => _ = self.prefixes.hosts.entry(prefix.clone()).or_insert(index),
            Domain::Any => _ = self.any.get_or_insert(index),
        }
    }
}

impl ChangedHeaders {
    fn of(route: &Route) -> Self {
        let weighted = || forward(route).into_iter().flat_map(|forward| &forward.to);
        let request = weighted().map(|to| &to.request_headers).chain([&route.request_headers]);
        let response = weighted().map(|to| &to.response_headers).chain([&route.response_headers]);
        Self { request: names(request), response: names(response) }
    }
}

fn names<'a>(changes: impl Iterator<Item = &'a Vec<HeaderChange>>) -> Option<Arc<[HeaderName]>> {
    let names: Vec<_> = changes.flat_map(|changes| changes.iter()).map(HeaderChange::name).cloned().collect();
    (!names.is_empty()).then(|| names.into())
}

impl Affixes {
    fn sort(&mut self) {
        let lengths: BTreeSet<usize> = self.hosts.keys().map(String::len).collect();
        self.lengths = lengths.into_iter().rev().collect();
    }

    /// Iterates over the matches with their lengths. `part` returns the part of the host with a given length.
    fn matching<'a>(
        &'a self,
        part: impl Fn(usize) -> Option<&'a str> + 'a,
    ) -> impl Iterator<Item = (usize, usize)> + 'a {
        self.lengths.iter().filter_map(move |&length| Some((length, *self.hosts.get(part(length)?)?)))
    }
}

impl MatchedRoute {
    /// Returns the status for an upstream that cannot be reached.
    pub(crate) fn unreachable(&self) -> u16 {
        if self.routes.table.unreachable_is_503 { 503 } else { 502 }
    }

    pub(crate) fn route(&self) -> &Route {
        &self.routes.table.hosts[self.host].routes[self.route]
    }

    /// Returns the names of the headers that the route changes.
    pub(crate) fn changed_headers(&self) -> &ChangedHeaders {
        &self.routes.changed[self.host][self.route]
    }

    /// Picks one of the route's upstreams at random by weight.
    pub(crate) fn pick_upstream(&self) -> Option<&WeightedUpstream> {
        self.routes.weighted[self.host][self.route].pick()
    }

    /// Counts an active request of a client while the guard lives; `None` if the route does not limit them.
    ///
    /// # Errors
    /// If the client has the route's maximum.
    pub(crate) fn enter(&self, client: IpAddr) -> Result<Option<ClientPlace>, TooMany> {
        match self.of(&self.routes.active) {
            Some(Some(active)) => active.enter(client),
            _ => Ok(None),
        }
    }

    /// Returns the limits in place of the chain's limits, if the route has any.
    pub(crate) fn limits_in_place(&self) -> Option<&[Arc<Limiter>]> {
        matches!(self.route().rate_limits, RouteRateLimits::InPlace(_)).then(|| self.limiters())
    }

    /// Returns the route's limits, in place of or in addition to the chain's.
    pub(crate) fn limiters(&self) -> &[Arc<Limiter>] {
        &self.routes.limiters[self.host][self.route]
    }

    /// Looks up this route's entry in a list by host and route.
    pub(crate) fn of<'a, T>(&self, by_host_and_route: &'a [Vec<T>]) -> Option<&'a T> {
        by_host_and_route.get(self.host)?.get(self.route)
    }

    /// Returns the upstream of one of the route's mirrors.
    pub(crate) fn mirror(&self, index: usize) -> Option<&Arc<Upstream>> {
        self.routes.mirrors[self.host][self.route].get(index)?.as_ref()
    }

    /// Returns the place in the configuration, for logs.
    pub(crate) fn place(&self) -> &Place {
        &self.route().place
    }
}

fn forward(route: &Route) -> Option<&Forward> {
    match &route.action {
        Action::Forward(forward) => Some(forward),
        Action::Redirect(_) | Action::Respond(_) => None,
    }
}
