//! Which target a request goes to: by host, then by the longest path.

use crate::{
    model::{Respond, Route, Target},
    upstream::{Upstream, Upstreams},
};
use std::{collections::HashMap, sync::Arc};

/// A listener's routes, ready to be looked up.
#[derive(Default)]
pub(crate) struct Routes {
    exact: HashMap<String, Vec<Entry>>,
    /// By the part behind `*.`.
    wildcard: HashMap<String, Vec<Entry>>,
    any: Vec<Entry>,
}

struct Entry {
    /// Without a slash at its end; empty matches every path.
    path: String,
    target: Destination,
}

/// Where a request goes.
#[derive(Clone)]
pub(crate) enum Destination {
    Upstream(Arc<Upstream>),
    Respond(Arc<Respond>),
}

impl Routes {
    /// Routes whose upstream is not among `upstreams` are left out: the configuration was checked for that.
    pub(crate) fn new(routes: &[Route], upstreams: &Upstreams) -> Self {
        let mut table = Self::default();
        for route in routes {
            let target = match &route.target {
                Target::Respond(respond) => Destination::Respond(Arc::new(respond.clone())),
                Target::Upstream(name) => match upstreams.get(name) {
                    Some(upstream) => Destination::Upstream(Arc::clone(upstream)),
                    None => continue,
                },
            };
            let path = route.path.as_deref().unwrap_or_default().trim_end_matches('/').to_owned();
            table.list(route.host.as_deref()).push(Entry { path, target });
        }
        for list in table.lists() {
            list.sort_by_key(|entry| std::cmp::Reverse(entry.path.len()));
        }
        table
    }

    /// The target for this host (without its port) and path.
    pub(crate) fn find(&self, host: &str, path: &str) -> Option<&Destination> {
        let host = host.to_ascii_lowercase();
        let parent = host.split_once('.').map(|(_, parent)| parent);
        let lists =
            [self.exact.get(&host), parent.and_then(|parent| self.wildcard.get(parent)), Some(&self.any)];
        lists.into_iter().flatten().flatten().find(|entry| entry.covers(path)).map(|entry| &entry.target)
    }

    /// The one upstream of a TCP listener.
    pub(crate) fn only_upstream(&self) -> Option<&Arc<Upstream>> {
        self.any.iter().find_map(|entry| match &entry.target {
            Destination::Upstream(upstream) => Some(upstream),
            Destination::Respond(_) => None,
        })
    }

    fn list(&mut self, host: Option<&str>) -> &mut Vec<Entry> {
        match host.map(str::to_ascii_lowercase) {
            None => &mut self.any,
            Some(host) => match host.strip_prefix("*.") {
                Some(parent) => self.wildcard.entry(parent.to_owned()).or_default(),
                None => self.exact.entry(host).or_default(),
            },
        }
    }

    fn lists(&mut self) -> impl Iterator<Item = &mut Vec<Entry>> {
        self.exact.values_mut().chain(self.wildcard.values_mut()).chain(std::iter::once(&mut self.any))
    }
}

impl Entry {
    /// Whole segments only: `/api` covers `/api` and `/api/x`, not `/apix`.
    fn covers(&self, path: &str) -> bool {
        path.strip_prefix(&self.path)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || rest.starts_with('?'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Place;

    fn answer(host: Option<&str>, path: Option<&str>, body: &'static str) -> Route {
        Route {
            host: host.map(Into::into),
            path: path.map(Into::into),
            target: Target::Respond(Respond::text(body)),
            place: Place::builtin(),
        }
    }

    fn body(routes: &Routes, host: &str, path: &str) -> String {
        match routes.find(host, path) {
            Some(Destination::Respond(respond)) => String::from_utf8_lossy(&respond.body).into_owned(),
            Some(Destination::Upstream(_)) => "upstream".into(),
            None => "none".into(),
        }
    }

    #[test]
    fn host_comes_before_path_and_longer_paths_before_shorter() {
        let routes = Routes::new(
            &[
                answer(None, None, "any"),
                answer(Some("*.example.com"), None, "wildcard"),
                answer(Some("www.example.com"), Some("/api"), "api"),
                answer(Some("www.example.com"), Some("/api/v2/"), "v2"),
                answer(Some("www.example.com"), Some("/"), "www"),
            ],
            &Upstreams::default(),
        );
        for (host, path, expected) in [
            ("www.example.com", "/api", "api"),
            ("WWW.example.com", "/api/v1", "api"),
            ("www.example.com", "/api/v2", "v2"),
            ("www.example.com", "/api/v2/x", "v2"),
            ("www.example.com", "/apix", "www"),
            ("shop.example.com", "/api", "wildcard"),
            ("a.shop.example.com", "/", "any"),
            ("example.com", "/", "any"),
        ] {
            assert_eq!(body(&routes, host, path), expected, "{host}{path}");
        }
    }

    #[test]
    fn a_host_without_a_matching_path_falls_back() {
        let routes = Routes::new(
            &[answer(Some("a.example"), Some("/x"), "x"), answer(None, Some("/y"), "y")],
            &Upstreams::default(),
        );
        assert_eq!(body(&routes, "a.example", "/y"), "y");
        assert_eq!(body(&routes, "a.example", "/z"), "none");
    }
}
