//! Routes of Caddy: handlers in a chain, of which the first that responds ends a request.

use super::{
    guard,
    json::{Json, Notes},
    matcher, placeholder, proxy,
};
use crate::{
    draft::{Action, Draft},
    ways::{Change, Conjunction, PathTest, Way, apply},
    yaml::Map,
};
use std::cell::RefCell;

/// Converts the routes of a server.
pub(super) struct Walk<'w> {
    pub(super) notes: &'w Notes<'w>,
    pub(super) draft: &'w RefCell<Draft>,
    pub(super) tls: bool,
}

impl Walk<'_> {
    /// Returns the ways of a list of routes for requests that meet the conditions; `after` are those for requests without a
    /// response.
    pub(super) fn list(&self, routes: Json<'_>, base: &Conjunction, after: Vec<Way>) -> Vec<Way> {
        routes.items().rev().fold(after, |after, route| self.route(route, base, after))
    }

    fn route(&self, route: Json<'_>, base: &Conjunction, after: Vec<Way>) -> Vec<Way> {
        let mut conditions = Vec::new();
        for one in matcher::alternatives(route.at(&["match"]), self.tls) {
            match base.and(&one) {
                Some(Some(both)) => conditions
                    .push(Conjunction { unknown: joined(base, &one), ..with_client(both, base, &one) }),
                Some(None) if base.stripped.is_some() => {
                    self.notes.refused(
                        "a matcher after `handle_path`",
                        "match the whole path outside of `handle_path`",
                    );
                }
                Some(None) => {}
                None => {
                    let mut both = base.clone();
                    both.unknown.push("the combination of matchers".to_owned());
                    conditions.push(both);
                }
            }
        }
        let mut ways = after;
        if route.at(&["terminal"]).value.as_bool() == Some(true) {
            let ends = conditions.iter().filter(|one| one.is_of_request());
            ways = ends.map(|one| way(one.clone(), Action::status(404))).chain(ways).collect();
        }
        for handler in route.at(&["handle"]).items().rev() {
            ways = self.handler(handler, &conditions, ways);
        }
        ways
    }

    fn handler(&self, handler: Json<'_>, conditions: &[Conjunction], mut ways: Vec<Way>) -> Vec<Way> {
        let name = handler.at(&["handler"]).text();
        let apply_all = |ways: Vec<Way>, change: &Change| {
            conditions.iter().fold(ways, |ways, one| apply(ways, one, change))
        };
        match name {
            "subroute" => {
                for one in conditions.iter().rev() {
                    ways = self.list(handler.at(&["routes"]), one, ways);
                }
                ways
            }
            "reverse_proxy" if handler.at(&["handle_response"]).items().next().is_some() => {
                match guard::authorization(handler, self.notes, self.draft) {
                    Ok(authorization) => {
                        self.notes.converted("forward_auth");
                        apply_all(ways, &Change::Keys(Map::of("authorization", authorization)))
                    }
                    Err(problem) => {
                        let text = self.notes.refused(
                            "reverse_proxy with handle_response",
                            format!("{problem}: write `authorization`"),
                        );
                        apply_all(ways, &Change::Close(503, text))
                    }
                }
            }
            "reverse_proxy" => {
                let (action, keys, comments) = match proxy::convert(handler, self.notes, self.draft) {
                    Ok(to) => {
                        self.notes.converted("reverse_proxy");
                        (Action::Upstream(to.upstream), to.keys, Vec::new())
                    }
                    Err(problem) => {
                        let text =
                            self.notes.refused("reverse_proxy", format!("{problem}: name an upstream"));
                        (Action::status(503), Map::new(), vec![format!("NOT SERVED: {text}: {problem}")])
                    }
                };
                self.respond("reverse_proxy", conditions, ways, |when| Way {
                    keys: keys.clone(),
                    comments: comments.clone(),
                    ..way(when, action.clone())
                })
            }
            "static_response" => self.static_response(handler, conditions, ways),
            "error" => {
                let status =
                    handler.at(&["status_code"]).number().filter(|status| (400..=599).contains(status));
                self.notes.converted("error");
                self.deny(status.unwrap_or(500), conditions, ways)
            }
            "file_server" | "templates" | "acme_server" | "php_server" => {
                let text =
                    self.notes.refused(name, "keep a server for it, and forward to it with `upstream`");
                if name == "templates" {
                    return ways;
                }
                self.respond(name, conditions, ways, |when| {
                    let comments =
                        vec![format!("NOT SERVED: {text}; forward to a server that has this content")];
                    Way { comments, ..way(when, Action::status(503)) }
                })
            }
            "headers" => {
                if conditions.iter().any(|one| !one.is_of_request()) {
                    self.notes.refused("headers", "write a route or a rule with these conditions");
                    return ways;
                }
                self.notes.converted("headers");
                let mut keys = Map::new();
                let request = proxy::changes(handler.at(&["request"]), true, &mut keys, self.notes);
                let response = proxy::changes(handler.at(&["response"]), false, &mut keys, self.notes);
                for (key, changes) in [("request_headers", request), ("response_headers", response)] {
                    if !changes.is_empty() {
                        ways = apply_all(ways, &Change::Headers(key, changes));
                    }
                }
                if keys.is_empty() { ways } else { apply_all(ways, &Change::Keys(keys)) }
            }
            "encode" => {
                let known = [("zstd", "zstd"), ("br", "br"), ("gzip", "gzip")];
                let encodings = handler.at(&["encodings"]);
                let algorithms: Vec<_> = known
                    .iter()
                    .filter(|(name, _)| !encodings.at(&[name]).is_missing())
                    .map(|(_, to)| *to)
                    .collect();
                self.notes.converted("encode");
                if algorithms.is_empty() {
                    return ways;
                }
                let mut compression = Map::of("algorithms", algorithms);
                if let Some(minimum) = handler.at(&["minimum_length"]).number() {
                    compression.set("minimum", minimum);
                }
                apply_all(ways, &Change::Keys(Map::of("compression", compression)))
            }
            "authentication" => match guard::basic_auth(handler) {
                Ok(auth) => {
                    self.notes.converted("basic_auth");
                    apply_all(ways, &Change::Keys(Map::of("basic_auth", auth)))
                }
                Err(problem) => {
                    let text = self.notes.refused(
                        "authentication",
                        format!("{problem}: use `basic_auth`, `jwt` or `authorization`"),
                    );
                    apply_all(ways, &Change::Close(503, text))
                }
            },
            "request_body" => match handler.at(&["max_size"]).number().filter(|size| *size > 0) {
                Some(size) => {
                    self.notes.converted("request_body");
                    let limits = Map::of("body", crate::values::size(size));
                    apply_all(ways, &Change::Keys(Map::of("limits", limits)))
                }
                None => {
                    self.notes.refused("request_body", "write `limits: { body: ... }`");
                    ways
                }
            },
            "rate_limit" => match guard::limits(handler) {
                Ok(limits) => {
                    self.notes
                        .differs("rate_limit", "capacity returns evenly, and each route counts by itself");
                    limits.into_iter().fold(ways, |ways, limit| apply_all(ways, &Change::Limit(limit)))
                }
                Err(problem) => {
                    let text = self.notes.refused("rate_limit", format!("{problem}: write `rate_limits`"));
                    apply_all(ways, &Change::Close(503, text))
                }
            },
            "rewrite" => self.rewrite(handler, conditions, ways),
            "vars" => {
                match handler.at(&["root"]).is_missing() {
                    true => self.notes.converted("vars"),
                    false => _ = self.notes.refused("root", "files are not served: keep a server for them"),
                }
                ways
            }
            "map"
            | "tracing"
            | "push"
            | "metrics"
            | "log_append"
            | "intercept"
            | "copy_response"
            | "copy_response_headers" => {
                self.notes.refused(name, "see the reference for headers, tracing and metrics");
                ways
            }
            // Handlers of other modules may protect what follows.
            other => {
                let text = self.notes.refused(other, "this module has no equivalent; its routes are closed");
                apply_all(ways, &Change::Close(503, text))
            }
        }
    }

    /// Adds a way for each condition that a route can have.
    fn respond(
        &self,
        name: &str,
        conditions: &[Conjunction],
        ways: Vec<Way>,
        make: impl Fn(Conjunction) -> Way,
    ) -> Vec<Way> {
        let mut made = Vec::new();
        for one in conditions {
            if one.is_of_request() {
                made.push(make(one.clone()));
            } else {
                let part = one.unknown.first().map_or("a condition on the client", String::as_str);
                self.notes.refused(
                    &format!("{name} with {part}"),
                    "write a route with other conditions, or `rules`",
                );
            }
        }
        made.extend(ways);
        made
    }

    fn static_response(&self, handler: Json<'_>, conditions: &[Conjunction], ways: Vec<Way>) -> Vec<Way> {
        let status = handler.at(&["status_code"]).number().unwrap_or(200);
        if handler.at(&["abort"]).value.as_bool() == Some(true) {
            self.notes.differs("abort", "the response is 403, and the connection stays open");
            return self.deny(403, conditions, ways);
        }
        let location = handler.at(&["headers", "Location"]).items().next().map(Json::text);
        if let Some(location) = location {
            return match placeholder::redirect(location, status) {
                Some(redirect) => {
                    self.notes.converted(&format!("redir {location}"));
                    self.respond("redir", conditions, ways, |when| {
                        let mut redirect = redirect.clone();
                        let is_loop = self.tls
                            && ["host", "port", "path"].iter().all(|key| redirect.get(key).is_none());
                        if is_loop {
                            redirect.set("host", "{host}");
                        }
                        way(when, Action::Redirect(redirect))
                    })
                }
                None => {
                    let text = self.notes.refused(&format!("redir {location}"), "write `redirect`");
                    self.respond("redir", conditions, ways, |when| {
                        let comments = vec![format!("CLOSED: {text}")];
                        Way { comments, ..way(when, Action::status(503)) }
                    })
                }
            };
        }
        if status >= 400 {
            self.notes.converted("respond");
            return self.deny_with(respond(handler, status), status, conditions, ways);
        }
        let has_variables = handler.at(&["body"]).text().contains('{');
        match has_variables {
            true => self.notes.differs("respond", "placeholders in the body are sent as written"),
            false => self.notes.converted("respond"),
        }
        let action = respond(handler, status);
        self.respond("respond", conditions, ways, |when| way(when, action.clone()))
    }

    fn deny(&self, status: u64, conditions: &[Conjunction], ways: Vec<Way>) -> Vec<Way> {
        let action = Action::Respond(Map::of("status", status));
        self.deny_with(action, status, conditions, ways)
    }

    /// Denies requests. Conditions on the client change the ways that follow; parts that cannot be expressed are left out, so
    /// that more is denied.
    fn deny_with(
        &self,
        action: Action,
        status: u64,
        conditions: &[Conjunction],
        mut ways: Vec<Way>,
    ) -> Vec<Way> {
        let mut denied = Vec::new();
        for one in conditions {
            let is_simple = one.unknown.is_empty();
            match (&one.src, &one.not_src[..], &one.not_methods[..]) {
                (Some(networks), [], []) if is_simple => {
                    ways = apply(ways, one, &Change::Deny(networks.clone()));
                }
                (None, networks @ [_, ..], []) if is_simple => {
                    ways = apply(ways, one, &Change::Allow(networks.to_vec()));
                }
                (None, [], methods @ [_, ..]) if is_simple => {
                    let status = u16::try_from(status).unwrap_or(403);
                    ways = apply(ways, one, &Change::Methods(methods.to_vec(), status));
                }
                (None, [], []) if is_simple => denied.push(way(one.clone(), action.clone())),
                _ => {
                    let part = one.unknown.first().map_or("several conditions on the client", String::as_str);
                    let text = self
                        .notes
                        .refused(&format!("respond {status} with {part}"), "write a rule or `clients`");
                    ways = apply(ways, one, &Change::Close(503, text));
                }
            }
        }
        denied.extend(ways);
        denied
    }

    fn rewrite(&self, handler: Json<'_>, conditions: &[Conjunction], mut ways: Vec<Way>) -> Vec<Way> {
        let prefix = handler.at(&["strip_path_prefix"]).text().trim_end_matches('/').to_ascii_lowercase();
        let others = handler.entries().any(|(key, _)| !["handler", "strip_path_prefix"].contains(&key));
        if prefix.is_empty() || others {
            self.notes.refused("rewrite", "write `rewrite` in the routes; servers receive the path as it is");
            return ways;
        }
        let mut changed = false;
        for way in &mut ways {
            let is_inside =
                conditions.iter().any(|one| way.when.and(one).flatten().as_ref() == Some(&way.when));
            let is_below = match &way.when.path {
                Some(PathTest::Begins(text) | PathTest::Exact(text)) => text.starts_with(&prefix),
                _ => false,
            };
            if is_inside && is_below {
                way.when.stripped = Some(prefix.clone());
                changed = true;
            }
        }
        match changed {
            true => self.notes.converted("uri strip_prefix"),
            false => _ = self.notes.refused("uri strip_prefix", "write `path` and `rewrite: /` in a route"),
        }
        ways
    }
}

fn way(when: Conjunction, action: Action) -> Way {
    Way { when, action, keys: Map::new(), comments: Vec::new(), backend: String::new() }
}

fn joined(base: &Conjunction, one: &Conjunction) -> Vec<String> {
    base.unknown.iter().chain(&one.unknown).cloned().collect()
}

/// Adds the conditions on the client, which a conjunction of requests does not have.
fn with_client(both: Conjunction, base: &Conjunction, one: &Conjunction) -> Conjunction {
    let both_have = base.src.is_some() && one.src.is_some();
    let mut made = Conjunction {
        src: one.src.clone().or_else(|| base.src.clone()),
        not_src: [&base.not_src[..], &one.not_src[..]].concat(),
        not_methods: [&base.not_methods[..], &one.not_methods[..]].concat(),
        ..both
    };
    if both_have {
        made.unknown.push("several matchers of the client".to_owned());
    }
    made
}

fn respond(handler: Json<'_>, status: u64) -> Action {
    let status = if (200..=599).contains(&status) { status } else { 200 };
    let mut respond = Map::of("status", status);
    let body = handler.at(&["body"]).text();
    if let Some(kind) = handler.at(&["headers", "Content-Type"]).items().next() {
        respond.set("content_type", kind.text());
    }
    if !body.is_empty() {
        respond.set("body", body);
    }
    Action::Respond(respond)
}
