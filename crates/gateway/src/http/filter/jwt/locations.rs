//! Locations of tokens in a request, and their removal.

use crate::http::request::{
    Request, header_spelling,
    request_view::{decoded, decoded_parameter},
};
use http::{HeaderMap, HeaderName, header};
use quadrille_config::model::JwtLocation;
use std::borrow::Cow;

/// Maximum number of tokens in one request for one requirement.
pub(super) const MOST_TOKENS: usize = 8;

/// Locations of tokens, each with the providers whose tokens may be there.
#[derive(Debug, Default)]
pub(super) struct Locations(Vec<(JwtLocation, Vec<usize>)>);

/// A token that was found in a request.
pub(super) struct Found {
    pub(super) text: String,
    location: JwtLocation,
    /// Indexes of the providers that may have issued it.
    pub(super) providers: Vec<usize>,
}

impl Locations {
    /// Collects the locations of the providers: headers first, then parameters and cookies.
    pub(super) fn of<'a>(providers: impl Iterator<Item = (usize, &'a [JwtLocation])>) -> Self {
        let mut all: Vec<(JwtLocation, Vec<usize>)> = Vec::new();
        for (provider, locations) in providers {
            for location in locations {
                match all.iter_mut().find(|(known, _)| known == location) {
                    Some((_, known)) => known.push(provider),
                    None => all.push((location.clone(), vec![provider])),
                }
            }
        }
        all.sort();
        Self(all)
    }

    /// Returns the tokens of a request; more than `MOST_TOKENS` if there are too many.
    pub(super) fn find(&self, request: &Request) -> Vec<Found> {
        let mut found = Vec::new();
        for (location, providers) in &self.0 {
            let found_at = |text: Cow<'_, str>| Found {
                text: text.into_owned(),
                location: location.clone(),
                providers: providers.clone(),
            };
            match location {
                JwtLocation::Header(name, prefix) => {
                    found.extend(in_header(&request.headers, name, prefix).map(found_at));
                }
                JwtLocation::Parameter(name) => {
                    found.extend(decoded_parameter(request.uri.query(), name).map(found_at));
                }
                JwtLocation::Cookie(name) => found.extend(in_cookies(&request.headers, name).map(found_at)),
            }
            if found.len() > MOST_TOKENS {
                break;
            }
        }
        found
    }
}

impl Found {
    /// Removes the token from the request. Cookies remain, as in Envoy.
    pub(super) fn remove(&self, request: &mut Request) {
        match &self.location {
            JwtLocation::Header(name, _) => {
                if let Ok(name) = HeaderName::try_from(name) {
                    header_spelling::remove(&mut request.headers, &name);
                }
            }
            JwtLocation::Parameter(name) => {
                let kept = |query: &str| {
                    let other = |pair: &&str| decoded(pair.split('=').next().unwrap_or_default()) != *name;
                    query.split('&').filter(other).collect::<Vec<_>>().join("&")
                };
                request.change_query(&kept);
            }
            JwtLocation::Cookie(_) => {}
        }
    }
}

/// Returns the tokens in a header. Every value of the header is a separate token.
fn in_header<'a>(
    headers: &'a HeaderMap,
    name: &str,
    prefix: &'a str,
) -> impl Iterator<Item = Cow<'a, str>> + use<'a> {
    let values = HeaderName::try_from(name).ok().map(|name| headers.get_all(name).iter());
    values.into_iter().flatten().filter_map(move |value| {
        let value = String::from_utf8_lossy(value.as_bytes());
        if prefix.is_empty() {
            return Some(value);
        }
        let at = value.find(prefix)? + prefix.len();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
        let from = value[at..].find(is_part).map_or(0, |skipped| at + skipped);
        Some(Cow::Owned(value[from..].to_owned()))
    })
}

/// Returns the token in the first cookie of this name (RFC 6265 section 4.2.1).
fn in_cookies<'a>(headers: &'a HeaderMap, name: &str) -> Option<Cow<'a, str>> {
    headers.get_all(header::COOKIE).iter().find_map(|value| {
        let text = value.to_str().ok()?;
        let pairs = text.split(';').filter_map(|pair| pair.trim().split_once('='));
        let mut named = pairs.filter(|(key, _)| *key == name);
        named.next().map(|(_, value)| Cow::Borrowed(value.trim_matches('"')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(name: &'static str, values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn in_headers_behind_their_prefix() {
        let found = |values: &[&'static str]| {
            let headers = headers("authorization", values);
            in_header(&headers, "authorization", "Bearer ").map(Cow::into_owned).collect::<Vec<_>>()
        };
        assert_eq!(found(&["Bearer a.b.c"]), ["a.b.c"]);
        assert_eq!(found(&["Bearer  \"a.b.c"]), ["a.b.c"]);
        assert_eq!(found(&["Bearer a", "Basic b", "x Bearer c"]), ["a", "c"]);
        assert_eq!(found(&["bearer a", "Bearer"]), Vec::<String>::new());
        assert_eq!(found(&["Bearer !"]), ["Bearer !"], "as in Envoy: not a token");
        let whole = headers("x-token", &["a.b.c"]);
        assert_eq!(in_header(&whole, "x-token", "").collect::<Vec<_>>(), ["a.b.c"]);
    }

    #[test]
    fn in_queries_and_cookies() {
        assert_eq!(decoded_parameter(Some("a=b&t=x.y&t=z"), "t").as_deref(), Some("x.y"));
        assert_eq!(decoded_parameter(Some("%74=x%2ey"), "t").as_deref(), Some("x.y"));
        assert_eq!(decoded_parameter(Some("a"), "t"), None);
        let cookies = headers("cookie", &["a=b; t=\"x\"", "t=y"]);
        assert_eq!(in_cookies(&cookies, "t").as_deref(), Some("x"));
        assert_eq!(in_cookies(&cookies, "b"), None);
    }
}
