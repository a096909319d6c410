//! Maps host names to values: `www.example.com`, or `*.example.com` for the names below.

use std::borrow::Cow;
use std::collections::HashMap;

/// Values by host name, exact or with a wildcard in front. Names are compared as they are: give them in lower case.
#[derive(Clone, Debug)]
pub(crate) struct HostMap<T> {
    exact: HashMap<String, T>,
    /// Keys without the leading `*.`.
    wildcard: HashMap<String, T>,
}

impl<T> HostMap<T> {
    /// Returns the value of a name, which may be `*.example.com`; inserts `T::default()` if the name is new.
    pub(crate) fn entry(&mut self, name: &str) -> &mut T
    where
        T: Default,
    {
        self.place(name).or_default()
    }

    /// Inserts a value for a name, unless it has one already.
    pub(crate) fn insert_first(&mut self, name: &str, value: T) {
        self.place(name).or_insert(value);
    }

    /// Returns the value of exactly this name.
    pub(crate) fn exact(&self, host: &str) -> Option<&T> {
        self.exact.get(host)
    }

    /// Returns the value of the wildcard that stands for the first label of this name (RFC 6125 section 6.4.3).
    pub(crate) fn one_label_wildcard(&self, host: &str) -> Option<&T> {
        self.wildcard.get(host.split_once('.')?.1)
    }

    /// Returns the value of the longest matching wildcard, which may stand for several labels, as in Envoy's filter chains.
    pub(crate) fn longest_wildcard(&self, host: &str) -> Option<&T> {
        let dots = host.match_indices('.').filter(|(at, _)| *at > 0);
        dots.map(|(at, _)| &host[at + 1..]).find_map(|parent| self.wildcard.get(parent))
    }

    /// Returns all names with their values, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (String, &T)> {
        let below = self.wildcard.iter().map(|(parent, value)| (format!("*.{parent}"), value));
        self.exact.iter().map(|(name, value)| (name.clone(), value)).chain(below)
    }

    fn place(&mut self, name: &str) -> std::collections::hash_map::Entry<'_, String, T> {
        match name.strip_prefix("*.") {
            Some(parent) => self.wildcard.entry(parent.to_owned()),
            None => self.exact.entry(name.to_owned()),
        }
    }
}

impl<T> Default for HostMap<T> {
    fn default() -> Self {
        Self { exact: HashMap::new(), wildcard: HashMap::new() }
    }
}

/// Host names are compared without regard to case (RFC 9110 section 4.2.3).
pub(crate) fn lower_case(host: &str) -> Cow<'_, str> {
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_exactly_and_by_wildcards() {
        let mut hosts = HostMap::default();
        for (index, name) in ["a.example.com", "*.example.com", "*.com"].into_iter().enumerate() {
            hosts.insert_first(name, index);
        }
        hosts.insert_first("*.com", 7);
        let found = |host| (hosts.exact(host), hosts.one_label_wildcard(host), hosts.longest_wildcard(host));
        assert_eq!(found("a.example.com"), (Some(&0), Some(&1), Some(&1)));
        assert_eq!(found("b.a.example.com"), (None, None, Some(&1)));
        assert_eq!(found("example.com"), (None, Some(&2), Some(&2)));
        for unknown in ["", ".com", "com", "example.net"] {
            assert_eq!(hosts.longest_wildcard(unknown), None, "{unknown}");
        }
        assert_eq!(*hosts.entry("*.new"), 0);
    }
}
