//! Session affinity: hash policies that keep a client on an endpoint.

use crate::http::request::{
    Request,
    request_view::{cookies, parameter},
};
use crc32fast::Hasher;
use http::{HeaderMap, HeaderValue};
use quadrille_config::model::{HashOn, HashPolicy};
use std::{fmt::Write, net::SocketAddr, time::Duration};

/// The hash of a request, and the cookie to set for the next one.
#[derive(Debug, Default)]
pub(crate) struct Stickiness {
    /// Point on the hash ring; `None` if no policy applies.
    pub(crate) point: Option<u32>,
    /// Value of `Set-Cookie`.
    pub(crate) cookie: Option<HeaderValue>,
}

impl Stickiness {
    pub(crate) fn of(request: &Request, policies: &[HashPolicy], tls: bool) -> Self {
        let query = request.uri.query();
        Self::new(&request.headers, query, request.sender.client, policies, tls)
    }

    fn new(
        headers: &HeaderMap,
        query: Option<&str>,
        client: SocketAddr,
        policies: &[HashPolicy],
        tls: bool,
    ) -> Self {
        let mut found = Self::default();
        let mut hasher = Hasher::new();
        for HashPolicy { on, terminal } in policies {
            let before = hasher.clone();
            let is_there = match on {
                HashOn::ClientIp => {
                    hasher.update(client.ip().to_canonical().to_string().as_bytes());
                    true
                }
                HashOn::Header(name) => {
                    let values = headers.get_all(name).iter();
                    values.inspect(|value| hasher.update(value.as_bytes())).count() > 0
                }
                HashOn::Query(name) => match parameter(query, name) {
                    Some(value) => {
                        hasher.update(value.as_bytes());
                        true
                    }
                    None => false,
                },
                HashOn::Cookie { name, lifetime, path } => match (cookies(headers, name).next(), lifetime) {
                    (Some(value), _) => {
                        hasher.update(value);
                        true
                    }
                    (None, Some(lifetime)) => {
                        let value = format!("{:016x}", fastrand::u64(..));
                        hasher.update(value.as_bytes());
                        found.cookie = set_cookie(name, &value, *lifetime, path.as_deref(), tls);
                        true
                    }
                    (None, None) => false,
                },
            };
            if !is_there {
                hasher = before;
                continue;
            }
            // A separator keeps adjacent values distinct.
            hasher.update(&[0]);
            found.point = Some(0);
            if *terminal {
                break;
            }
        }
        found.point = found.point.map(|_| hasher.finalize());
        found
    }
}

fn set_cookie(
    name: &str,
    value: &str,
    lifetime: Duration,
    path: Option<&str>,
    tls: bool,
) -> Option<HeaderValue> {
    let mut text = format!("{name}={value}");
    if !lifetime.is_zero() {
        // Writing to a string does not fail.
        let _ = write!(text, "; Max-Age={}", lifetime.as_secs().max(1));
    }
    if let Some(path) = path {
        let _ = write!(text, "; Path={path}");
    }
    text.push_str(if tls { "; Secure; HttpOnly" } else { "; HttpOnly" });
    HeaderValue::try_from(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderName;

    fn on(on: HashOn) -> HashPolicy {
        HashPolicy { on, terminal: false }
    }

    fn user() -> HashPolicy {
        on(HashOn::Header(HeaderName::from_static("x-user")))
    }

    fn session(lifetime: Option<Duration>) -> HashPolicy {
        on(HashOn::Cookie { name: "id".to_owned(), lifetime, path: Some("/".to_owned()) })
    }

    fn point(headers: &[(&'static str, &str)], query: &str, policies: &[HashPolicy]) -> Option<u32> {
        found(headers, query, policies).point
    }

    fn found(headers: &[(&'static str, &str)], query: &str, policies: &[HashPolicy]) -> Stickiness {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        Stickiness::new(&map, Some(query), "192.0.2.1:7".parse().expect("an address"), policies, true)
    }

    #[test]
    fn what_is_the_same_leads_to_the_same_point() {
        let one = point(&[("x-user", "ann")], "", &[user()]);
        assert!(one.is_some() && one == point(&[("x-user", "ann"), ("accept", "x")], "a=b", &[user()]));
        assert_ne!(one, point(&[("x-user", "bob")], "", &[user()]));
        assert_eq!(point(&[], "", &[user()]), None, "no value");
        let query = [on(HashOn::Query("q".to_owned()))];
        assert_eq!(point(&[], "q=7", &query), point(&[], "a=b&q=7&q=8", &query));
        assert!(point(&[], "", &[on(HashOn::ClientIp)]).is_some());
    }

    #[test]
    fn several_count_together_up_to_a_terminal_one() {
        let headers = [("x-user", "ann"), ("cookie", "other=1; id=\"5\"; id=6")];
        let both = point(&headers, "", &[user(), session(None)]);
        assert_ne!(both, point(&headers, "", &[user()]));
        assert_ne!(both, point(&headers, "", &[session(None)]));
        assert_eq!(point(&headers[..1], "", &[user(), session(None)]), point(&headers, "", &[user()]));
        let terminal = HashPolicy { terminal: true, ..user() };
        assert_eq!(point(&headers, "", &[terminal.clone(), session(None)]), point(&headers, "", &[user()]));
        assert_eq!(
            point(&headers[1..], "", &[terminal, session(None)]),
            point(&headers, "", &[session(None)])
        );
    }

    #[test]
    fn a_cookie_that_is_missing_is_set_and_leads_back() {
        let first = found(&[], "", &[session(Some(Duration::from_secs(60)))]);
        let set = first.cookie.expect("a cookie").to_str().expect("a text").to_owned();
        let (pair, attributes) = set.split_once(';').expect("attributes");
        assert_eq!(attributes, " Max-Age=60; Path=/; Secure; HttpOnly");
        let again = found(&[("cookie", pair)], "", &[session(Some(Duration::from_secs(60)))]);
        assert_eq!((again.point, again.cookie), (first.point, None));
        let other = found(&[], "", &[session(Some(Duration::ZERO))]);
        assert!(!other.cookie.expect("a cookie").to_str().expect("a text").contains("Max-Age"));
        assert_eq!(found(&[], "", &[session(None)]).point, None);
    }
}
