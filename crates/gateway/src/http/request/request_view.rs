//! A request as seen by routes.

use http::{HeaderMap, Method, header};
use percent_encoding::percent_decode_str;
use quadrille_config::model::{
    CookieMatch, Doubt, HeaderMatch, HeaderRule, PathMatch, QueryMatch, RequestPart, Route, Template,
    TemplatePart, TextMatch,
};
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

impl<'a> RequestView<'a> {
    /// Returns the host, with its port if it has one and `port` is set.
    pub(crate) fn host(&self, port: bool) -> &str {
        if port { self.authority } else { without_port(self.authority) }
    }

    /// Returns whether all conditions of a route hold.
    pub(crate) fn matches_route(&self, route: &Route) -> bool {
        self.has_method(&route.methods)
            && self.matches(&route.path, &route.headers, &route.query)
            && route.cookies.iter().all(|cookie| self.cookie_holds(cookie, Doubt::One))
    }

    /// Returns whether all of these conditions hold.
    pub(crate) fn matches(&self, path: &PathMatch, headers: &[HeaderMatch], query: &[QueryMatch]) -> bool {
        path.matches(self.path)
            && headers.iter().all(|header| self.matches_header(header))
            && query.iter().all(|query| self.matches_query(query))
    }

    /// Returns whether the method is one of these, or the list is empty.
    pub(crate) fn has_method(&self, methods: &[Method]) -> bool {
        methods.is_empty() || methods.iter().any(|method| method.as_str() == self.method)
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
        self.query_holds(wanted, Doubt::One)
    }

    /// Like `matches_query`; `doubt` decides if several parameters of the name disagree.
    pub(crate) fn query_holds(&self, wanted: &QueryMatch, doubt: Doubt) -> bool {
        let QueryMatch { name, value, invert, decode } = wanted;
        let text = |text: &'a str| if *decode { form_decoded(text) } else { text.into() };
        let pairs = self.query.into_iter().flat_map(|query| query.split('&'));
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        let values = pairs.filter(|(found, _)| text(found) == name.as_str()).map(|(_, value)| text(value));
        value_holds(values, value.as_ref(), *invert, doubt)
    }

    /// Returns whether a condition on a cookie holds; `doubt` decides if several cookies of the name disagree.
    pub(crate) fn cookie_holds(&self, wanted: &CookieMatch, doubt: Doubt) -> bool {
        let values = cookies(self.headers, &wanted.name).map(String::from_utf8_lossy);
        value_holds(values, wanted.value.as_ref(), wanted.invert, doubt)
    }

    /// Returns a part of the request.
    pub(crate) fn part(&self, part: &RequestPart) -> &'a str {
        match part {
            RequestPart::Host => without_port(self.authority),
            RequestPart::Path => self.path,
            RequestPart::Query => self.query.unwrap_or_default(),
            RequestPart::Capture(expression, group) => {
                let captures = expression.captures(self.path);
                captures.and_then(|found| found.get(*group)).map_or("", |group| group.as_str())
            }
        }
    }

    /// Replaces the placeholders of a text.
    pub(crate) fn render(&self, template: &Template) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Literal(text) => text.clone(),
            TemplatePart::Request(part) => self.part(part).to_owned(),
        };
        template.0.iter().map(part).collect()
    }
}

/// Returns whether a condition on a value holds that occurs any number of times. The first one counts, unless `doubt`
/// decides. Without a condition, the value must be present, or, inverted, absent.
fn value_holds<V: AsRef<str>>(
    mut values: impl Iterator<Item = V>,
    condition: Option<&TextMatch>,
    invert: bool,
    doubt: Doubt,
) -> bool {
    let first = values.next();
    let Some(condition) = condition else { return first.is_some() != invert };
    let meets = |value: V| condition.matches(value.as_ref()) != invert;
    first.is_some_and(|first| match doubt {
        Doubt::One => meets(first),
        Doubt::Holds => meets(first) || values.any(meets),
        Doubt::Fails => meets(first) && values.all(meets),
    })
}

/// Returns the values of the cookies with this name (RFC 6265 section 4.2.1), without quotes.
pub(crate) fn cookies<'a>(headers: &'a HeaderMap, name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let pairs = lines.flat_map(|value| value.as_bytes().split(|byte| *byte == b';').map(<[u8]>::trim_ascii));
    let values = pairs.filter_map(move |pair| pair.strip_prefix(name.as_bytes())?.strip_prefix(b"="));
    values.map(|value| value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\"")).unwrap_or(value))
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

/// Decodes a name or value of `application/x-www-form-urlencoded` (URL standard, section 5.1).
fn form_decoded(text: &str) -> Cow<'_, str> {
    if text.contains('+') { decoded(&text.replace('+', " ")).into_owned().into() } else { decoded(text) }
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

    /// Routes use the first occurrence, and rules any.
    #[test]
    fn doubt_decides_when_parameters_or_cookies_disagree() {
        let mut headers = HeaderMap::new();
        headers.append("cookie", HeaderValue::from_static("a=1; role=user"));
        headers.append("cookie", HeaderValue::from_static("role=\"admin\""));
        let view = RequestView {
            authority: "a.example",
            method: "GET",
            path: "/",
            query: Some("role=user&r%6Fle=adm%69n&x"),
            headers: &headers,
            tls: true,
        };
        let admin = || Some(TextMatch::exact("admin"));
        for (value, invert, doubt, expected) in [
            (admin(), false, Doubt::One, false),
            (admin(), false, Doubt::Holds, true),
            (admin(), false, Doubt::Fails, false),
            (admin(), true, Doubt::One, true),
            (admin(), true, Doubt::Fails, false),
            (None, false, Doubt::One, true),
            (None, true, Doubt::Holds, false),
        ] {
            let (name, condition) = (String::from("role"), format!("{value:?} {invert} {doubt:?}"));
            let cookie = CookieMatch { name: name.clone(), value: value.clone(), invert };
            let query = QueryMatch { name, value, invert, decode: true };
            assert_eq!(view.query_holds(&query, doubt), expected, "{condition}");
            assert_eq!(view.cookie_holds(&cookie, doubt), expected, "{condition}");
        }
        let absent = |invert| CookieMatch { name: "none".into(), value: None, invert };
        assert!(
            view.cookie_holds(&absent(true), Doubt::One) && !view.cookie_holds(&absent(false), Doubt::One)
        );
        let sent = QueryMatch { name: "role".into(), value: admin(), invert: false, decode: false };
        assert!(!view.query_holds(&sent, Doubt::Holds), "names are compared as sent");
    }
}
