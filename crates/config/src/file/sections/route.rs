//! Routes, and the fixed answers that they may give.

use super::{route_actions, route_conditions};
use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{Action, Domain, Forward, PathMatch, PathRewrite, PathRule, Place, Respond, Route, Weighted},
    values,
};
use std::collections::{
    HashMap,
    hash_map::Entry::{Occupied, Vacant},
};

pub(super) const ROUTE: Section = Section {
    path: "listeners[].routes[]",
    about: "Which requests go where. Each has one of `upstream`, `split`, `redirect` and `respond`.",
    keys: &[
        Key {
            name: "host",
            value: "host, `*.domain` or `*`",
            preset: Preset::Is("\"*\""),
            about: "`example.com` matches that host, `*.example.com` every host with one label before it.",
        },
        Key {
            name: "path",
            value: "path",
            preset: Preset::Is("/"),
            about: "A prefix of whole segments: `/api` matches `/api` and `/api/users`, not `/apis`.",
        },
        Key {
            name: "path_exact",
            value: "path",
            preset: Preset::Means("none"),
            about: "This path alone, in place of `path`. Comes before regular expressions and prefixes.",
        },
        Key {
            name: "path_regex",
            value: "regular expression",
            preset: Preset::Means("none"),
            about: "All of the path matches, in place of `path`; as in RE2, without look-around. Comes before prefixes; of \
                    several, the first that is written.",
        },
        Key {
            name: "headers",
            value: "list of conditions",
            preset: Preset::Means("none"),
            about: "What must be true of the request's headers. Of two routes with the same path, the one with more \
                    conditions comes first.",
        },
        Key {
            name: "upstream",
            value: "name of an upstream",
            preset: Preset::Means("none"),
            about: "The servers that get matching requests.",
        },
        Key {
            name: "split",
            value: "list of shares",
            preset: Preset::Means("none"),
            about: "Several upstreams that share matching requests by weight, or, in `tcp` mode, connections.",
        },
        Key {
            name: "redirect",
            value: "`https`, or mapping",
            preset: Preset::Means("none"),
            about: "Sends the client elsewhere.",
        },
        Key {
            name: "respond",
            value: "text, or mapping",
            preset: Preset::Means("none"),
            about: "A fixed answer, without an upstream. Text alone is the body of an answer with status 200.",
        },
        Key {
            name: "rewrite",
            value: "path",
            preset: Preset::Means("none"),
            about: "What the upstream sees in place of `path`: `path: /old` with `rewrite: /new` makes `/new/x` of `/old/x`.",
        },
        Key {
            name: "timeout",
            value: "duration",
            preset: Preset::Means("none"),
            about: "From the request to the end of its answer, all attempts together. An answer that has not begun by then \
                    is a 504; one that has is cut off. Not for WebSocket.",
        },
        Key {
            name: "retry",
            value: "mapping",
            preset: Preset::Means("the upstream's `retries`"),
            about: "Which failures are tried again.",
        },
    ],
};

pub(super) const RESPOND: Section = Section {
    path: "listeners[].routes[].respond",
    about: "A fixed answer. It is kept in memory, so keep it short.",
    keys: &[
        Key { name: "status", value: "200 to 599", preset: Preset::Is("200"), about: "The HTTP status." },
        Key {
            name: "content_type",
            value: "media type",
            preset: Preset::Is("text/plain; charset=utf-8"),
            about: "The `Content-Type` of the body.",
        },
        Key { name: "body", value: "text", preset: Preset::Is("\"\""), about: "The whole body." },
    ],
};

/// A route as it is written.
pub(super) struct Written {
    host: Option<String>,
    route: Route,
}

impl Written {
    /// Every request.
    pub(super) fn all(action: Action, place: Place) -> Self {
        Self { host: None, route: Route::new(PathMatch::segments(""), action, place) }
    }

    pub(super) fn action(&self) -> &Action {
        &self.route.action
    }

    /// Where in TCP mode connections go.
    pub(super) fn into_shares(self) -> Vec<Weighted> {
        match self.route.action {
            Action::Forward(forward) => forward.to,
            Action::Respond(_) | Action::Redirect(_) => Vec::new(),
        }
    }

    /// What it means.
    pub(super) fn into_model(self) -> (Domain, Route) {
        let domain = match self.host.map(|host| host.to_ascii_lowercase()) {
            None => Domain::Any,
            Some(host) => match host.strip_prefix("*.") {
                Some(parent) => Domain::Below(parent.to_owned()),
                None => Domain::Exact(host),
            },
        };
        (domain, self.route)
    }
}

/// A route to one of `upstreams`, to a fixed answer, or elsewhere.
pub(super) fn route(field: &Field<'_>, upstreams: &[&str]) -> Option<Written> {
    let keys = field.mapping(&ROUTE)?;
    let host = keys.read_or("host", None, values::route_host);
    let path = path(&keys);
    if ACTIONS.iter().all(|key| keys.get(key).is_none()) {
        field.error("nothing says where matching requests go; add `upstream` or `respond`");
    }
    let mut action = action(&keys, upstreams);
    if let Some(split) = keys.get("split") {
        let to = route_actions::split(&split, upstreams);
        action = Some(Action::Forward(Box::new(Forward { to, ..Forward::to("") })));
    }
    if let Some(redirect) = keys.get("redirect") {
        action = route_actions::redirect(&redirect).map(|redirect| Action::Redirect(Box::new(redirect)));
    }
    refuse_second_action(&keys);
    forwarding(&keys, action.as_mut());
    let mut route = Route::new(path?, action?, field.place());
    route.headers = keys.get("headers").map(|field| route_conditions::headers(&field)).unwrap_or_default();
    Some(Written { host: host?, route })
}

const ACTIONS: [&str; 4] = ["upstream", "respond", "split", "redirect"];

/// `upstream` beside `respond` is told of elsewhere.
fn refuse_second_action(keys: &Mapping<'_>) {
    let written: Vec<_> = ACTIONS.iter().filter(|key| keys.get(key).is_some()).collect();
    if let [first, .., last @ (&"split" | &"redirect")] = written[..]
        && let Some(field) = keys.get(last)
    {
        field.error(format!("`{first}` is given too, and a request goes to one of them; remove one"));
    }
}

fn path(keys: &Mapping<'_>) -> Option<PathMatch> {
    const PATHS: [&str; 3] = ["path", "path_exact", "path_regex"];
    let mut written = PATHS.iter().filter_map(|key| keys.get(key));
    if let (Some(_), Some(second)) = (written.next(), written.next()) {
        second.error("a route has one path; remove one, or write two routes");
    }
    let whole = |rule| PathMatch { rule, ignore_case: false };
    if let Some(field) = keys.get("path_exact") {
        return field.parse(values::path).map(|path| whole(PathRule::Exact(path)));
    }
    if let Some(field) = keys.get("path_regex") {
        return field.parse(values::whole_regex).map(|expression| whole(PathRule::Regex(expression)));
    }
    let path = keys.read_or("path", None, values::route_path)?;
    Some(PathMatch::segments(path.as_deref().unwrap_or_default()))
}

/// How requests go upstream.
fn forwarding(keys: &Mapping<'_>, action: Option<&mut Action>) {
    let rewrite = keys.read("rewrite", values::path).map(PathRewrite::Prefix);
    let timeout = keys.read("timeout", values::timeout);
    let retry = keys.get("retry").and_then(|field| route_actions::retry(&field));
    match action {
        Some(Action::Forward(forward)) => {
            (forward.rewrite, forward.timeout, forward.retry) = (rewrite, timeout, retry);
        }
        Some(Action::Respond(_) | Action::Redirect(_)) => {
            for field in ["rewrite", "timeout", "retry"].iter().filter_map(|key| keys.get(key)) {
                field.error("no request of this route goes upstream; remove this");
            }
        }
        None => {}
    }
    if let (Some(_), Some(field)) = (keys.get("path_regex"), keys.get("rewrite")) {
        field.error("a regular expression has no prefix that could be rewritten; use `path` or `path_exact`");
    }
}

/// What the keys `upstream` and `respond` of a route or a listener say.
pub(super) fn action(keys: &Mapping<'_>, upstreams: &[&str]) -> Option<Action> {
    let (upstream, respond) = (keys.get("upstream"), keys.get("respond"));
    if let (Some(_), Some(respond)) = (&upstream, &respond) {
        respond.error("`upstream` is given too, and a request goes to one of them; remove one");
    }
    let respond = respond.and_then(|field| self::respond(&field)).map(Action::Respond);
    let upstream = upstream.and_then(|field| field.name_among(upstreams, "upstream"));
    let upstream = upstream.map(|name| Action::Forward(Box::new(Forward::to(name))));
    upstream.or(respond)
}

fn respond(field: &Field<'_>) -> Option<Respond> {
    if field.is_scalar() {
        return field.text().map(|text| Respond::text(text.to_owned()));
    }
    let keys = field.mapping(&RESPOND)?;
    let mut respond = Respond::text("");
    keys.update("status", &mut respond.status, values::status);
    keys.update("content_type", &mut respond.content_type, values::header_value);
    keys.update("body", &mut respond.body, |text| Ok(text.to_owned().into()));
    if matches!(respond.status, 204 | 304) && !respond.body.is_empty() {
        field.at("body").error(format!("an answer with status {} has no body; remove it", respond.status));
    }
    Some(respond)
}

/// A second route for the same requests could never match.
pub(super) fn refuse_shadowed(routes: &[(Field<'_>, Written)]) {
    let mut seen = HashMap::new();
    for (field, route) in routes {
        let conditions = format!("{:?} {:?}", route.route.path, route.route.headers);
        match seen.entry((&route.host, conditions)) {
            Vacant(entry) => _ = entry.insert(field.line()),
            Occupied(entry) => {
                let line = entry.get();
                field.error(format!(
                    "never reached: the route on line {line} takes the same requests; remove one"
                ));
            }
        }
    }
}
