//! Host validation of the admin endpoint.
//!
//! A web page can point a host name of its own at the endpoint's address, and the browser then treats the endpoint as
//! part of the page's origin (DNS rebinding). The `Host` header of such a request carries that name. Neither an IP
//! address nor `localhost` can be used for this attack.

use crate::host_map::HostMap;
use http::{HeaderMap, Uri, header::HOST, uri::Authority};
use std::net::{IpAddr, Ipv6Addr};

/// Names of the endpoint, besides IP addresses.
pub(super) struct HostCheck(HostMap<()>);

impl HostCheck {
    /// Accepts `localhost` and these names, or patterns `*.name`, in lower case.
    pub(super) fn new(names: &[String]) -> Self {
        let mut own = HostMap::default();
        for name in names.iter().map(String::as_str).chain(["localhost", "*.localhost"]) {
            own.insert_first(name, ());
        }
        Self(own)
    }

    /// Returns whether a request is for the endpoint. A request without a host is accepted: browsers always send one.
    pub(super) fn accepts(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(HOST).iter();
        match (uri.authority(), named.next(), named.next()) {
            (Some(authority), _, None) => self.is_own(authority),
            (None, Some(host), None) => {
                Authority::try_from(host.as_bytes()).is_ok_and(|authority| self.is_own(&authority))
            }
            (None, None, None) => true,
            (_, _, Some(_)) => false,
        }
    }

    fn is_own(&self, authority: &Authority) -> bool {
        let host = authority.host().to_ascii_lowercase();
        let name = host.strip_suffix('.').unwrap_or(&host);
        let bracketed = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        match bracketed {
            Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
            None => {
                name.parse::<IpAddr>().is_ok()
                    || self.0.exact(name).or_else(|| self.0.longest_wildcard(name)).is_some()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostCheck;
    use http::{HeaderMap, HeaderValue, Uri, header::HOST};

    fn accepts(uri: &'static str, hosts: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, HeaderValue::from_static(host));
        }
        let names = ["gateway.example".to_owned(), "*.internal".to_owned()];
        HostCheck::new(&names).accepts(&Uri::from_static(uri), &headers)
    }

    #[test]
    fn addresses_loopback_names_and_own_names_are_accepted() {
        for host in [
            "127.0.0.1:9901",
            "[::1]:9901",
            "192.0.2.1",
            "localhost:9901",
            "LocalHost.",
            "a.localhost",
            "gateway.example:80",
            "a.b.internal",
        ] {
            assert!(accepts("/", &[host]), "{host}");
        }
        assert!(accepts("/", &[]), "HTTP/1.0 does not require a host");
        assert!(accepts("http://localhost/", &["localhost"]));
    }

    #[test]
    fn other_names_are_not() {
        for host in [
            "rebound.example",
            "localhost.example",
            "127.0.0.1.example",
            "notlocalhost",
            ".internal",
            "internal",
            "a.gateway.example",
            "[localhost]",
            "",
            "a b",
        ] {
            assert!(!accepts("/", &[host]), "{host}");
        }
        assert!(!accepts("http://rebound.example/", &["localhost"]), "the request target takes precedence");
        assert!(!accepts("/", &["localhost", "rebound.example"]), "two hosts");
    }
}
