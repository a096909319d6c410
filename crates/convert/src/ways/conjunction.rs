//! Conditions on requests and connections that all hold.

use super::path_test::{PathTest, both};
use crate::{
    draft::Path,
    expression,
    yaml::{Map, Value},
};

/// Conditions that all hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Conjunction {
    pub(crate) hosts: Vec<String>,
    pub(crate) path: Option<PathTest>,
    /// `methods`, `headers`, `queries` and `cookies`.
    pub(crate) others: Map,
    /// Client networks, and those excluded.
    pub(crate) src: Option<Vec<String>>,
    pub(crate) not_src: Vec<String>,
    pub(crate) not_methods: Vec<String>,
    /// Whether the client has presented a valid certificate.
    pub(crate) certificate: Option<bool>,
    /// A list of users, and whether the request has the password of one.
    pub(crate) users: Option<(String, bool)>,
    /// The number of requests in the period of the stick table that is exceeded.
    pub(crate) above: Option<u64>,
    pub(crate) sni: Vec<String>,
    /// Whether paths are compared without regard to case.
    pub(crate) ignore_case: bool,
    /// The beginning of the path that servers do not receive.
    pub(crate) stripped: Option<String>,
    /// Parts that cannot be expressed.
    pub(crate) unknown: Vec<String>,
}

impl Conjunction {
    /// Returns the conjunction of both: `Some(None)` if no request meets both, `None` if it cannot be expressed.
    pub(crate) fn and(&self, other: &Self) -> Option<Option<Self>> {
        let mut one = self.clone();
        one.ignore_case |= other.ignore_case;
        one.stripped = one.stripped.or_else(|| other.stripped.clone());
        match (self.hosts.is_empty(), other.hosts.is_empty()) {
            (true, _) => one.hosts.clone_from(&other.hosts),
            (false, true) => {}
            (false, false) => {
                one.hosts.retain(|host| other.hosts.contains(host));
                if one.hosts.is_empty() {
                    return Some(None);
                }
            }
        }
        one.path = match (&self.path, &other.path) {
            (Some(known), Some(path)) => match both(known, path)? {
                Some(path) => Some(path),
                None => return Some(None),
            },
            (path, None) | (None, path) => path.clone(),
        };
        for key in ["headers", "queries", "cookies"] {
            let Some(Value::List(items)) = other.others.get(key) else { continue };
            for item in items {
                let is_known =
                    matches!(one.others.get(key), Some(Value::List(known)) if known.contains(item));
                if !is_known {
                    one.others.push(key, item.clone());
                }
            }
        }
        match (one.others.get("methods"), other.others.get("methods")) {
            (None, Some(methods)) => one.others.set("methods", methods.clone()),
            (Some(known), Some(methods)) if known != methods => return None,
            _ => {}
        }
        Some(Some(one))
    }

    /// Returns whether routes and rules can express all of it.
    pub(crate) fn is_of_request(&self) -> bool {
        self.src.is_none()
            && self.not_src.is_empty()
            && self.not_methods.is_empty()
            && self.certificate.is_none()
            && self.users.is_none()
            && self.above.is_none()
            && self.sni.is_empty()
            && self.unknown.is_empty()
    }

    /// Returns whether no property of the request is named.
    pub(crate) fn is_every_request(&self) -> bool {
        self.hosts.is_empty() && self.path.is_none() && self.others.is_empty()
    }

    /// Returns the value of `when` of a rule.
    pub(crate) fn when(&self) -> Map {
        let mut when = Map::new();
        if !self.hosts.is_empty() {
            when.set("host", self.hosts.clone());
        }
        match self.path() {
            Path::Exact(path) => when.set("path_exact", path),
            Path::Regex(expression) => when.set("path_regex", expression),
            Path::Prefix(_) | Path::FirstPrefix(_) => {}
        }
        when.extend(self.others.clone());
        if when.is_empty() {
            when.set("path", "/");
        }
        when
    }

    /// Returns the condition on the path of a route.
    pub(crate) fn path(&self) -> Path {
        let Some(test) = &self.path else { return Path::Prefix(String::new()) };
        let case = if self.ignore_case { "(?i)" } else { "" };
        if let (PathTest::Begins(text), Some(prefix)) = (test, &self.stripped)
            && let Some(rest) = text.strip_prefix(prefix.as_str()).and_then(|rest| rest.strip_prefix('/'))
        {
            let (prefix, rest) = (expression::literal(prefix), expression::literal(rest));
            return Path::Regex(format!("{case}{prefix}/({rest}.*)"));
        }
        match test.to_path() {
            Path::Regex(expression) => Path::Regex(format!("{case}{expression}")),
            Path::Exact(path) if self.ignore_case => {
                Path::Regex(format!("{case}{}", expression::literal(&path)))
            }
            path => path,
        }
    }

    /// Returns the path for servers, if they do not receive the beginning of the path.
    pub(crate) fn rewrite(&self) -> Option<String> {
        let prefix = self.stripped.as_ref()?;
        match self.path.as_ref()? {
            PathTest::Begins(text) if text.strip_prefix(prefix.as_str())?.starts_with('/') => {
                Some("/{1}".to_owned())
            }
            PathTest::Exact(path) => {
                let rest = path.strip_prefix(prefix.as_str())?;
                Some(if rest.starts_with('/') { rest.replace('{', "{{") } else { format!("/{rest}") })
            }
            _ => None,
        }
    }
}
