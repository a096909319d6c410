//! Ways of requests to servers, in the order of the source, as routes.

use super::conjunction::Conjunction;
use crate::{
    draft::{Action, Path, Route},
    yaml::{Map, Value},
};

/// A rule that selects a backend or responds, with its conditions.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) when: Conjunction,
    pub(crate) action: Action,
    pub(crate) keys: Map,
    pub(crate) comments: Vec<String>,
    /// The name of the backend.
    pub(crate) backend: String,
}

/// A change of the ways of some requests.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Allow(Vec<String>),
    Deny(Vec<String>),
    Keys(Map),
    Limit(Map),
    /// Changes of headers under this key, before those of the way.
    Headers(&'static str, Vec<Map>),
    /// Other methods than these have this status.
    Methods(Vec<String>, u16),
    Close(u16, String),
}

/// Applies a change to requests that meet the conditions. Where they cannot be combined with those of a way, all its requests
/// are changed: a guard then holds for more.
pub(crate) fn apply(ways: Vec<Way>, when: &Conjunction, change: &Change) -> Vec<Way> {
    let mut made = Vec::new();
    for way in ways {
        if when.is_every_request() {
            made.extend(changed(way, change));
            continue;
        }
        match way.when.and(when) {
            Some(Some(merged)) if merged == way.when => made.extend(changed(way, change)),
            Some(Some(merged)) => {
                made.extend(changed(Way { when: merged, ..way.clone() }, change));
                made.push(way);
            }
            Some(None) => made.push(way),
            None => made.extend(changed(way, change)),
        }
    }
    made
}

fn changed(mut way: Way, change: &Change) -> Vec<Way> {
    match change {
        Change::Allow(networks) => {
            let clients = way.keys.inner("clients");
            if clients.get("allow").is_none() {
                clients.set("allow", networks.clone());
            } else {
                // Both lists must allow a client.
                way.close(503, "two lists of allowed clients apply to these requests");
            }
        }
        Change::Deny(networks) => {
            let clients = way.keys.inner("clients");
            networks.iter().for_each(|network| clients.push("deny", network));
        }
        Change::Keys(keys) => {
            let differs = |key: &&str| matches!((way.keys.get(key), keys.get(key)), (Some(known), Some(other)) if known != other);
            if ["basic_auth", "authorization"].iter().any(differs) {
                // Both would have to accept a request.
                way.close(503, "two requirements of the same kind apply to these requests");
            } else {
                way.keys.extend(keys.clone());
            }
        }
        Change::Headers(key, changes) => {
            let later = match way.keys.get(key) {
                Some(Value::List(items)) => items.clone(),
                _ => Vec::new(),
            };
            let all: Vec<Value> = changes.iter().cloned().map(Value::from).chain(later).collect();
            way.keys.set(key, all);
        }
        Change::Limit(limit) => way.keys.push("rate_limits", limit.clone()),
        Change::Methods(methods, status) => {
            if way.when.others.get("methods").is_none() {
                let mut others = way.clone();
                others.action = Action::status(*status);
                way.when.others.set("methods", methods.clone());
                return vec![way, others];
            }
        }
        Change::Close(status, reason) => way.close(*status, reason),
    }
    vec![way]
}

impl Way {
    fn close(&mut self, status: u16, reason: &str) {
        let mut route = self.route();
        route.close(status, reason);
        self.action = route.action;
        self.comments = route.comments;
    }

    fn route(&self) -> Route {
        let mut keys = self.keys.clone();
        if let Some(rewrite) = self.when.rewrite() {
            keys.set("rewrite", rewrite);
        }
        Route {
            hosts: self.when.hosts.clone(),
            path: self.when.path(),
            conditions: self.when.others.clone(),
            action: self.action.clone(),
            keys,
            comments: self.comments.clone(),
        }
    }

    /// Returns the rank of the way's conditions, by which routes are selected.
    fn rank(&self) -> (u8, u8, usize) {
        let host = match &self.when.hosts[..] {
            [] => 0,
            _ => 1,
        };
        let path = match self.when.path() {
            Path::Exact(_) => 2,
            Path::Regex(_) => 1,
            Path::Prefix(_) | Path::FirstPrefix(_) => 0,
        };
        let listed = |key| match self.when.others.get(key) {
            Some(Value::List(items)) => items.len(),
            _ => 0,
        };
        let methods = usize::from(self.when.others.get("methods").is_some());
        (host, path, listed("headers") + listed("queries") + listed("cookies") + methods)
    }
}

/// Returns the routes of ways. The source takes the first way whose conditions hold, Quadrille the most specific route: where a
/// later way is more specific, a route with the conditions of both leads to the earlier one.
pub(crate) fn routes(ways: &[Way]) -> Vec<Route> {
    const MOST: usize = 2_000;
    let mut made: Vec<Way> = Vec::new();
    for (index, way) in ways.iter().enumerate() {
        for earlier in &ways[..index] {
            if way.rank() <= earlier.rank() || made.len() > MOST {
                continue;
            }
            if let Some(Some(both)) = earlier.when.and(&way.when) {
                made.push(Way { when: both, ..earlier.clone() });
            }
        }
        made.push(way.clone());
    }
    made.iter().map(Way::route).collect()
}
