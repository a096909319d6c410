//! A request as seen by routes.

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use quadrille_config::model::{Doubt, HeaderMatch, HeaderRule, PathMatch, QueryMatch, Route};
use std::borrow::Cow;

/// A request as seen by routes.
pub(crate) struct RequestView<'a> {
    /// The host as sent by the client, which may include a port.
    pub(crate) authority: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: Option<&'a str>,
    pub(crate) headers: &'a HeaderMap,
    /// Whether the request was received over TLS.
    pub(crate) tls: bool,
}

impl RequestView<'_> {
    /// Returns the host, with its port if it has one and `port` is set.
    pub(crate) fn host(&self, port: bool) -> &str {
        if port { self.authority } else { without_port(self.authority) }
    }

    /// Returns whether all conditions of a route hold.
    pub(crate) fn matches_route(&self, route: &Route) -> bool {
        self.matches(&route.path, &route.headers, &route.query)
    }

    /// Returns whether all of these conditions hold.
    pub(crate) fn matches(&self, path: &PathMatch, headers: &[HeaderMatch], query: &[QueryMatch]) -> bool {
        path.matches(self.path)
            && headers.iter().all(|header| self.matches_header(header))
            && query.iter().all(|query| self.matches_query(query))
    }

    /// Returns whether a header condition holds. Several lines of a header are separate values, and one match
    /// suffices; an inverted condition holds if none matches. If they were joined with commas, a rule against one
    /// value would miss it, while the upstream sees each.
    pub(crate) fn matches_header(&self, header: &HeaderMatch) -> bool {
        self.header_holds(header, Doubt::One)
    }

    /// Like `matches_header`; `doubt` decides if the lines disagree.
    pub(crate) fn header_holds(&self, header: &HeaderMatch, doubt: Doubt) -> bool {
        let mut values = self.values(&header.name).peekable();
        let missing = values.peek().is_none();
        let empty = (missing && header.missing_is_empty).then_some(Cow::Borrowed(""));
        let mut values = values.chain(empty);
        let meets = |value: &str| match &header.rule {
            HeaderRule::Present(_) => true,
            HeaderRule::Text(text) => text.matches(value),
            HeaderRule::Range(from, below) => {
                value.parse::<i64>().is_ok_and(|number| (*from..*below).contains(&number))
            }
        };
        let holds = match (&header.rule, doubt) {
            (HeaderRule::Present(there), _) => (!missing || header.missing_is_empty) == *there,
            _ if missing && !header.missing_is_empty => return false,
            (_, Doubt::One) => values.any(|value| meets(&value)),
            (_, Doubt::Holds | Doubt::Fails) => {
                let (mut some, mut all) = (false, true);
                for value in values {
                    let one = meets(&value);
                    some |= one;
                    all &= one;
                }
                if some != all {
                    return doubt == Doubt::Holds;
                }
                some
            }
        };
        holds != header.invert
    }

    /// Returns the first value of a header or pseudo-header.
    pub(crate) fn first_value(&self, name: &str) -> Option<String> {
        self.values(name).next().map(Cow::into_owned)
    }

    fn values<'v>(&'v self, name: &'v str) -> impl Iterator<Item = Cow<'v, str>> {
        let (pseudo, lines) = match self.pseudo_header(name) {
            Some(value) => (value, None),
            None => (None, Some(self.headers.get_all(name))),
        };
        let lines = lines.into_iter().flatten().map(|value| String::from_utf8_lossy(value.as_bytes()));
        pseudo.into_iter().chain(lines)
    }

    /// Returns the value of a pseudo-header (RFC 9113 section 8.3.1) if it has one; `None` for a header.
    fn pseudo_header(&self, name: &str) -> Option<Option<Cow<'_, str>>> {
        let Some(part) = name.strip_prefix(':') else {
            return (name == "host").then(|| Some(self.authority.into()));
        };
        Some(Some(match part {
            "method" => self.method.into(),
            "authority" => self.authority.into(),
            "scheme" => if self.tls { "https" } else { "http" }.into(),
            "path" => match self.query {
                Some(query) => format!("{}?{query}", self.path).into(),
                None => self.path.into(),
            },
            _ => return Some(None),
        }))
    }

    pub(crate) fn matches_query(&self, wanted: &QueryMatch) -> bool {
        parameter(self.query, &wanted.name)
            .is_some_and(|value| wanted.value.as_ref().is_none_or(|condition| condition.matches(value)))
    }
}

/// Returns the value of the first parameter with this name; empty without an equals sign.
pub(crate) fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let mut pairs = query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// Like [`parameter`], with percent-decoded names and values.
pub(crate) fn decoded_parameter<'a>(query: Option<&'a str>, name: &str) -> Option<Cow<'a, str>> {
    let pairs = query?.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let mut named = pairs.filter(|(key, _)| decoded(key) == name);
    named.next().map(|(_, value)| decoded(value))
}

/// Percent-decodes a text (RFC 3986 section 2.1).
pub(crate) fn decoded(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

pub(crate) fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    /// An upstream may use any of the lines.
    #[test]
    fn doubt_decides_when_lines_disagree() {
        let mut headers = HeaderMap::new();
        for tenant in ["acme", "victim"] {
            headers.append("x-tenant", HeaderValue::from_static(tenant));
        }
        headers.insert("x-one", HeaderValue::from_static("acme"));
        let view = RequestView {
            authority: "a.example",
            method: "GET",
            path: "/",
            query: None,
            headers: &headers,
            tls: true,
        };
        let holds = |name: &str, invert, doubt| {
            let rule = HeaderRule::Text(quadrille_config::model::TextMatch::exact("acme"));
            let header = HeaderMatch { name: name.into(), rule, invert, missing_is_empty: false };
            view.header_holds(&header, doubt)
        };
        for (invert, doubt, expected) in [
            (false, Doubt::One, true),
            (false, Doubt::Holds, true),
            (false, Doubt::Fails, false),
            (true, Doubt::One, false),
            (true, Doubt::Holds, true),
            (true, Doubt::Fails, false),
        ] {
            assert_eq!(holds("x-tenant", invert, doubt), expected, "{invert} {doubt:?}");
            assert_eq!(holds("x-one", invert, doubt), !invert, "one line: {invert} {doubt:?}");
            assert!(!holds("x-none", invert, doubt), "no line: {invert} {doubt:?}");
        }
    }
}
