//! The converted configuration, before it is written: listeners with routes, and upstreams.

use crate::yaml::{Map, Value};
use std::collections::BTreeSet;

/// A converted configuration.
#[derive(Debug, Default)]
pub struct Draft {
    /// The listeners.
    pub listeners: Vec<Listener>,
    /// Upstreams by name, in the order of their use.
    pub upstreams: Vec<(String, Map)>,
    /// Other keys of the top level.
    pub top: Map,
}

/// A listener.
#[derive(Clone, Debug, Default)]
pub struct Listener {
    /// The address and the port.
    pub address: String,
    /// Keys other than `address`, `rules` and `routes`.
    pub keys: Map,
    /// The rules, in their order.
    pub rules: Vec<Map>,
    /// The routes.
    pub routes: Vec<Route>,
}

/// A route, or the beginning of one.
#[derive(Clone, Debug)]
pub struct Route {
    /// The hosts; empty for every host.
    pub hosts: Vec<String>,
    /// The condition on the path.
    pub path: Path,
    /// `methods`, `headers`, `queries` and `cookies`.
    pub conditions: Map,
    /// The action.
    pub action: Action,
    /// All other keys.
    pub keys: Map,
    /// Comments before the route.
    pub comments: Vec<String>,
}

/// Condition on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Path {
    /// Whole segments.
    Prefix(String),
    /// Whole segments, before regular expressions.
    FirstPrefix(String),
    /// Exactly this path.
    Exact(String),
    /// The whole path.
    Regex(String),
}

/// Action of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Forwards to an upstream.
    Upstream(String),
    /// Forwards to several upstreams, by weight.
    Split(Vec<(String, u64)>),
    /// The value of `redirect`.
    Redirect(Map),
    /// The value of `respond`.
    Respond(Map),
}

impl Route {
    /// Returns a route without hosts and conditions.
    pub fn new(path: Path, action: Action) -> Self {
        Self {
            hosts: Vec::new(),
            path,
            conditions: Map::new(),
            action,
            keys: Map::new(),
            comments: Vec::new(),
        }
    }

    /// Closes the route, unless its response is an error already: it responds with this status. The comment says why, and
    /// what the route did before.
    pub fn close(&mut self, status: u16, reason: &str) {
        if self.action.denies() {
            return;
        }
        let before = match &self.action {
            Action::Upstream(name) => format!("; without this guard it is `upstream: {name}`"),
            Action::Split(shares) => {
                let names: Vec<_> = shares.iter().map(|(name, _)| name.as_str()).collect();
                format!("; without this guard it is `split` among {}", names.join(" and "))
            }
            Action::Respond(_) | Action::Redirect(_) => String::new(),
        };
        self.comment(format!("CLOSED: {reason}{before}"));
        self.action = Action::status(status);
    }

    /// Adds a comment, once.
    pub fn comment(&mut self, text: impl Into<String>) {
        let text = text.into();
        if !self.comments.contains(&text) {
            self.comments.push(text);
        }
    }

    fn to_map(&self) -> Map {
        let mut map = Map::new();
        self.comments.iter().for_each(|comment| map.comment(comment));
        match &self.hosts[..] {
            [] => {}
            [host] => map.set("host", host),
            hosts => map.set("host", hosts.to_vec()),
        }
        match &self.path {
            Path::Prefix(path) if path.is_empty() => map.set("path", "/"),
            Path::Prefix(path) => map.set("path", path),
            Path::FirstPrefix(path) => {
                map.set("path", path);
                map.set("before_regex", "on");
            }
            Path::Exact(path) => map.set("path_exact", path),
            Path::Regex(expression) => map.set("path_regex", expression),
        }
        map.extend(self.conditions.clone());
        let mut keys = self.keys.clone();
        match &self.action {
            Action::Upstream(name) => map.set("upstream", name),
            Action::Split(shares) => {
                let share =
                    |(name, weight): &(String, u64)| Map::of("upstream", name).with("weight", *weight);
                map.set("split", shares.iter().map(share).collect::<Vec<_>>());
            }
            Action::Redirect(redirect) => map.set("redirect", redirect.clone()),
            Action::Respond(respond) => map.set("respond", respond.clone()),
        }
        if !self.action.forwards() {
            quadrille_config::FORWARDING_KEYS.iter().for_each(|key| keys.remove(key));
        }
        map.extend(keys);
        map
    }

    /// Returns the text of what the route matches, equal for routes that match the same requests.
    fn matched(&self, host: &str) -> String {
        let path = match &self.path {
            Path::Prefix(path) | Path::FirstPrefix(path) => format!("prefix {}", path.trim_end_matches('/')),
            other => format!("{other:?}"),
        };
        format!("{} {path} {}", host.to_ascii_lowercase(), Value::Map(self.conditions.clone()).flow())
    }
}

impl Action {
    /// Returns a response with this status and no body.
    pub fn status(status: u16) -> Self {
        Self::Respond(Map::of("status", u64::from(status)))
    }

    /// Returns whether the response is an error.
    fn denies(&self) -> bool {
        let Self::Respond(respond) = self else { return false };
        matches!(respond.get("status"), Some(Value::Text(status)) if status.starts_with(['4', '5']))
    }

    /// Returns whether requests are forwarded.
    pub fn forwards(&self) -> bool {
        matches!(self, Self::Upstream(_) | Self::Split(_))
    }
}

impl Listener {
    /// Removes routes that a former one with the same conditions covers, and repeated hosts: they are errors.
    fn without_repetitions(&self) -> Vec<Route> {
        let mut seen = BTreeSet::new();
        let unseen = |route: &Route| {
            let mut route = route.clone();
            if route.hosts.is_empty() {
                return seen.insert(route.matched("*")).then_some(route);
            }
            let mut hosts = Vec::new();
            for host in &route.hosts {
                if seen.insert(route.matched(host)) {
                    hosts.push(host.clone());
                }
            }
            route.hosts = hosts;
            (!route.hosts.is_empty()).then_some(route)
        };
        self.routes.iter().filter_map(unseen).collect()
    }

    fn to_map(&self) -> Map {
        let mut map = Map::of("address", &self.address);
        map.extend(self.keys.clone());
        if !self.rules.is_empty() {
            map.set("rules", self.rules.clone());
        }
        let routes = self.without_repetitions();
        if !routes.is_empty() {
            map.set("routes", routes.iter().map(Route::to_map).collect::<Vec<_>>());
        }
        map
    }
}

impl Draft {
    /// Returns the whole document.
    pub fn to_map(&self) -> Map {
        let mut map = Map::of("listeners", self.listeners.iter().map(Listener::to_map).collect::<Vec<_>>());
        if !self.upstreams.is_empty() {
            let upstreams = map.inner("upstreams");
            self.upstreams.iter().for_each(|(name, upstream)| upstreams.set(name, upstream.clone()));
        }
        map.extend(self.top.clone());
        map
    }

    /// Adds an upstream, and returns its name: that of an equal one, or this name with a number if it is taken by a
    /// different one.
    pub fn upstream(&mut self, name: &str, upstream: Map) -> String {
        let name = usable(name);
        let candidates = std::iter::once(name.clone()).chain((2..).map(|number| format!("{name}-{number}")));
        for candidate in candidates {
            match self.upstreams.iter().find(|(known, _)| *known == candidate) {
                Some((_, same)) if *same == upstream => return candidate,
                Some(_) => {}
                None => {
                    self.upstreams.push((candidate.clone(), upstream));
                    return candidate;
                }
            }
        }
        name
    }
}

/// Returns a name with the characters that names of upstreams have.
fn usable(name: &str) -> String {
    let usable = |c: char| if c.is_ascii_alphanumeric() || "_.-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(usable).take(100).collect();
    let name = name.trim_matches('-').to_owned();
    if name.is_empty() { "upstream".to_owned() } else { name }
}
