//! A request as routes see it.

use http::HeaderMap;
use quadrille_config::model::{HeaderMatch, HeaderRule, PathMatch, QueryMatch, Route};
use std::borrow::Cow;

/// A request as routes see it.
pub(crate) struct RequestView<'a> {
    /// The host as the client has sent it, which may have a port.
    pub(crate) authority: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    /// Whether it came over TLS.
    pub(crate) tls: bool,
}

impl RequestView<'_> {
    /// The host, with its port if it has one and `port` asks for it.
    pub(crate) fn host(&self, port: bool) -> &str {
        if port { self.authority } else { without_port(self.authority) }
    }

    /// Whether all conditions of a route hold.
    pub(crate) fn matches_route(&self, route: &Route) -> bool {
        self.matches(&route.path, &route.headers, &route.query)
    }

    /// Whether all of these hold.
    pub(crate) fn matches(&self, path: &PathMatch, headers: &[HeaderMatch], query: &[QueryMatch]) -> bool {
        path.matches(self.path)
            && headers.iter().all(|header| self.matches_header(header))
            && query.iter().all(|query| self.matches_query(query))
    }

    pub(super) fn matches_header(&self, header: &HeaderMatch) -> bool {
        let value = self.value(&header.name);
        let value = match (&header.rule, value) {
            (HeaderRule::Present(there), value) => {
                let value = value.is_some() || header.missing_is_empty;
                return (value == *there) != header.invert;
            }
            (_, None) if header.missing_is_empty => Cow::Borrowed(""),
            (_, None) => return false,
            (_, Some(value)) => value,
        };
        let holds = match &header.rule {
            HeaderRule::Present(_) => true,
            HeaderRule::Text(text) => text.matches(&value),
            HeaderRule::Range(from, below) => {
                value.parse::<i64>().is_ok_and(|number| (*from..*below).contains(&number))
            }
        };
        holds != header.invert
    }

    fn value(&self, name: &str) -> Option<Cow<'_, str>> {
        if let Some(part) = name.strip_prefix(':') {
            return Some(match part {
                "method" => self.method.into(),
                "authority" => self.authority.into(),
                "scheme" => if self.tls { "https" } else { "http" }.into(),
                "path" => match self.query {
                    Some(query) => format!("{}?{query}", self.path).into(),
                    None => self.path.into(),
                },
                _ => return None,
            });
        }
        if name == "host" {
            return Some(self.authority.into());
        }
        let mut values =
            self.headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        let first = values.next()?;
        Some(values.fold(first, |all, value| Cow::Owned(format!("{all},{value}"))))
    }

    fn matches_query(&self, wanted: &QueryMatch) -> bool {
        parameter(self.query, &wanted.name)
            .is_some_and(|value| wanted.value.as_ref().is_none_or(|condition| condition.matches(value)))
    }
}

/// The value of the first parameter of this name; it is empty if there is no equals sign.
pub(super) fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let mut pairs = query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

pub(super) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}
