//! Values read for a route, until it is complete.

use super::{placeholders, route_actions::whole_path, route_limits::RouteLimits};
use crate::{
    Field, Problem,
    model::{
        AccessRules, Action, Compression, CookieMatch, Cors, ErrorPage, Expression, Fault, Forward,
        HashPolicy, HeaderChange, HeaderMatch, HostRewrite, Mirror, PathMatch, PathRewrite, PathRule, Place,
        QueryMatch, RateLimit, Redirect, Respond, RetryPolicy, Route, RouteAuthorization, RouteBasicAuth,
        RouteJwt, RouteRateLimits, Upgrades, Weighted,
    },
    values,
};
use http::Method;
use std::{sync::Arc, time::Duration};

/// Values read for a route; `None` for an invalid host or path.
pub(super) struct RouteDraft {
    pub(super) hosts: Option<Vec<Option<String>>>,
    pub(super) path: Option<PathMatch>,
    pub(super) before_regex: bool,
    pub(super) methods: Vec<Method>,
    pub(super) headers: Vec<HeaderMatch>,
    pub(super) queries: Vec<QueryMatch>,
    pub(super) cookies: Vec<CookieMatch>,
    pub(super) upstream: Option<String>,
    pub(super) split: Option<Vec<Weighted>>,
    pub(super) redirect: Option<Redirect>,
    pub(super) respond: Option<Respond>,
    pub(super) rewrite: Option<PathRewrite>,
    pub(super) upstream_host: Option<HostRewrite>,
    pub(super) timeout: Option<Duration>,
    pub(super) request_headers: Vec<HeaderChange>,
    pub(super) response_headers: Vec<HeaderChange>,
    pub(super) retry: Option<RetryPolicy>,
    pub(super) sticky: Vec<HashPolicy>,
    pub(super) clients: Vec<AccessRules>,
    pub(super) client_auth: Option<AccessRules>,
    pub(super) cors: Option<Cors>,
    pub(super) fault: Option<Fault>,
    pub(super) rate_limits: Vec<RateLimit>,
    pub(super) limits: RouteLimits,
    pub(super) basic_auth: RouteBasicAuth,
    pub(super) jwt: RouteJwt,
    pub(super) authorization: RouteAuthorization,
    pub(super) compression: Option<Option<Arc<Compression>>>,
    pub(super) error_pages: Vec<ErrorPage>,
    pub(super) mirrors: Vec<Mirror>,
    pub(super) request_trailers: bool,
    pub(super) upgrades: Upgrades,
    pub(super) logged_parts: Option<u32>,
}

impl RouteDraft {
    pub(super) fn every_request() -> Self {
        Self {
            hosts: Some(vec![None]),
            path: Some(segments(None)),
            before_regex: false,
            methods: Vec::new(),
            headers: Vec::new(),
            queries: Vec::new(),
            cookies: Vec::new(),
            upstream: None,
            split: None,
            redirect: None,
            respond: None,
            rewrite: None,
            upstream_host: None,
            timeout: None,
            request_headers: Vec::new(),
            response_headers: Vec::new(),
            retry: None,
            sticky: Vec::new(),
            clients: Vec::new(),
            client_auth: None,
            cors: None,
            fault: None,
            rate_limits: Vec::new(),
            limits: RouteLimits::default(),
            basic_auth: RouteBasicAuth::default(),
            jwt: RouteJwt::default(),
            authorization: RouteAuthorization::default(),
            compression: None,
            error_pages: Vec::new(),
            mirrors: Vec::new(),
            request_trailers: false,
            logged_parts: None,
            upgrades: Upgrades::default(),
        }
    }

    /// Returns the expression that the path must match, if it is one.
    pub(super) fn path_regex(&self) -> Option<&Expression> {
        match &self.path.as_ref()?.rule {
            PathRule::Regex(expression) => Some(expression),
            _ => None,
        }
    }

    /// Reads the path for the upstream. A prefix is replaced by a fixed text, a whole path by one with placeholders.
    pub(super) fn read_rewrite(&self, field: &Field<'_>) -> Option<PathRewrite> {
        match &self.path.as_ref()?.rule {
            PathRule::Regex(expression) => {
                field.parse(|text| placeholders::path(text, Some(expression))).map(whole_path)
            }
            PathRule::Exact(_) => field.parse(|text| placeholders::path(text, None)).map(whole_path),
            PathRule::Prefix(_) | PathRule::Segments(_) => field.parse(prefix).map(PathRewrite::Prefix),
        }
    }

    /// Takes the settings that do not depend on the action, which the route lacks.
    pub(super) fn take_settings(&mut self, place: Place) -> Route {
        let compression = self.compression.take().flatten();
        let access = std::mem::take(&mut self.clients).into_iter().chain(self.client_auth.take());
        Route {
            before_regex: self.before_regex,
            methods: std::mem::take(&mut self.methods),
            headers: std::mem::take(&mut self.headers),
            query: std::mem::take(&mut self.queries),
            cookies: std::mem::take(&mut self.cookies),
            access: access.collect(),
            request_headers: std::mem::take(&mut self.request_headers),
            response_headers: std::mem::take(&mut self.response_headers),
            cors: self.cors.take(),
            fault: self.fault.take(),
            rate_limits: RouteRateLimits::Besides(std::mem::take(&mut self.rate_limits)),
            body_limit: self.limits.body,
            active_per_client: self.limits.active_per_client,
            basic_auth: std::mem::take(&mut self.basic_auth),
            jwt: std::mem::take(&mut self.jwt),
            authorization: std::mem::take(&mut self.authorization),
            compression,
            error_pages: std::mem::take(&mut self.error_pages),
            logged_parts: self.logged_parts,
            ..Route::new(segments(None), Action::Respond(Respond::text("")), place)
        }
    }

    pub(super) fn into_action(self) -> Option<Action> {
        let Self { rewrite, timeout, retry, sticky: hash, mirrors, request_trailers, upgrades, .. } = self;
        let host = self.upstream_host;
        if let Some(redirect) = self.redirect {
            return Some(Action::Redirect(Box::new(redirect)));
        }
        let to = self.split.or_else(|| Some(vec![Weighted::all(self.upstream?)]));
        let forward = |to| Forward {
            to,
            rewrite,
            host,
            timeout,
            retry,
            hash,
            mirrors,
            request_trailers,
            upgrades,
            ..Forward::to("")
        };
        to.map(|to| Action::Forward(Box::new(forward(to)))).or(self.respond.map(Action::Respond))
    }
}

pub(super) fn segments(path: Option<String>) -> PathMatch {
    PathMatch::segments(path.as_deref().unwrap_or_default())
}

pub(super) fn exactly(path: String) -> PathMatch {
    PathMatch { rule: PathRule::Exact(path), ignore_case: false }
}

pub(super) fn matching(expression: Expression) -> PathMatch {
    PathMatch { rule: PathRule::Regex(expression), ignore_case: false }
}

/// Parses the text that replaces a prefix.
fn prefix(text: &str) -> Result<String, Problem> {
    if text.contains('{') {
        return Err(Problem::new(
            "the text that replaces a prefix has no placeholders",
            "use `path_regex: '/old/(.*)'` with `rewrite: '/new/{1}'`",
        ));
    }
    values::path(text)
}
