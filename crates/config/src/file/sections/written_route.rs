//! A route as it is written, and its conversion to the model.

use super::{rate_limits, value_conditions};
use crate::model::{
    Action, Compression, Domain, HeaderChange, PathMatch, Place, Route, RouteRateLimits, Weighted,
};

use std::sync::Arc;

/// A route as it is written.
pub(super) struct WrittenRoute {
    /// The hosts; `None` stands for every host.
    pub(super) hosts: Vec<Option<String>>,
    pub(super) route: Route,
    /// Whether the route turns the listener's compression off.
    pub(super) uncompressed: bool,
}

impl WrittenRoute {
    /// Prepends the listener's header changes to the route's own.
    pub(super) fn with_headers(mut self, request: &[HeaderChange], response: &[HeaderChange]) -> Self {
        let before = |all: &mut Vec<HeaderChange>, first: &[HeaderChange]| {
            all.splice(..0, first.iter().cloned());
        };
        if matches!(self.route.action, Action::Forward(_)) {
            before(&mut self.route.request_headers, request);
        }
        before(&mut self.route.response_headers, response);
        self
    }

    /// Names the route's limits, for a listener with this name, and a scope that distinguishes it from others.
    pub(super) fn with_limits_of(mut self, listener: &str, scope: &str) -> Self {
        let Route { path, methods, headers, query, cookies, rate_limits, .. } = &mut self.route;
        if let RouteRateLimits::Besides(limits) = rate_limits {
            let hosts: Vec<_> = self.hosts.iter().map(|host| host.as_deref().unwrap_or_default()).collect();
            let host = hosts.join(",");
            let name = format!("{listener} {host}{}", path.rule.text());
            let conditions = format!("{path:?} {methods:?} {headers:?} {query:?} {cookies:?}");
            rate_limits::name(limits, &name, &format!("{scope} {host} {conditions}"));
        }
        self
    }

    /// Applies the listener's compression, unless the route configures its own.
    pub(super) fn with_compression(mut self, of_listener: Option<&Arc<Compression>>) -> Self {
        let is_open = self.route.compression.is_none() && !self.uncompressed;
        if is_open && matches!(self.route.action, Action::Forward(_)) {
            self.route.compression = of_listener.cloned();
        }
        self
    }

    pub(super) fn for_everything(action: Action, place: Place) -> Self {
        let route = Route::new(PathMatch::segments(""), action, place);
        Self { hosts: vec![None], route, uncompressed: false }
    }

    /// Returns the targets of connections in TCP mode.
    pub(super) fn into_shares(self) -> Vec<Weighted> {
        match self.route.action {
            Action::Forward(forward) => forward.to,
            Action::Respond(_) | Action::Redirect(_) => Vec::new(),
        }
    }

    /// Converts the route to the model: one for each of its hosts.
    pub(super) fn into_model(self) -> impl Iterator<Item = (Domain, Route)> {
        let Self { hosts, route, uncompressed: _ } = self;
        hosts.into_iter().map(move |host| (value_conditions::domain(host.as_deref()), route.clone()))
    }
}
