//! The effective authority of a request, used alike by routes, upstreams, logs and `X-Forwarded-Host`.

use http::{
    HeaderMap, HeaderValue, Uri, Version,
    header::{HOST, InvalidHeaderValue},
    uri,
};

/// The host that a request is for, with its port if it has one (RFC 9110 section 7.2). The trailing dot of an
/// absolute name is removed.
#[derive(Clone, Debug)]
pub(crate) struct Authority(Source);

#[derive(Clone, Debug)]
enum Source {
    Target(uri::Authority),
    Header(HeaderValue),
}

/// Returns the authority of a request: the authority of its target, or else its Host header. It is absent only where
/// HTTP/1.0 allows that, or where Host is empty.
///
/// # Errors
/// Returns the text for the client. Rejected is every form that an upstream and a route could read as different
/// hosts.
pub(crate) fn effective(
    target: &Uri,
    headers: &HeaderMap,
    version: Version,
) -> Result<Option<Authority>, &'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next();
    if hosts.next().is_some() {
        return Err("The request names several hosts.\n");
    }
    let source = match (target.authority(), host) {
        // RFC 9112 section 3.2.
        (_, None) if version == Version::HTTP_11 => return Err("The request names no host.\n"),
        (Some(target), Some(host)) if version >= Version::HTTP_2 && !is_same(target, host) => {
            // RFC 9113 section 8.3.1, RFC 9114 section 4.3.1. In HTTP/1.1 the target takes precedence over Host (RFC
            // 9112 section 3.2.2).
            return Err("The request names two hosts.\n");
        }
        (Some(target), _) => Source::Target(target.clone()),
        (None, Some(host)) if host.is_empty() => return Ok(None),
        (None, Some(host)) => Source::Header(host.clone()),
        (None, None) if version >= Version::HTTP_2 => return Err("The request names no host.\n"),
        (None, None) => return Ok(None),
    };
    Authority(source).canonical().map(Some).ok_or("The request's host is invalid.\n")
}

fn is_same(target: &uri::Authority, host: &HeaderValue) -> bool {
    target.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes())
}

impl Authority {
    pub(crate) fn as_str(&self) -> &str {
        match &self.0 {
            Source::Target(target) => target.as_str(),
            Source::Header(host) => host.to_str().unwrap_or_default(),
        }
    }

    /// Returns the authority as a header value.
    pub(crate) fn to_header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        match &self.0 {
            Source::Target(target) => HeaderValue::from_str(target.as_str()),
            Source::Header(host) => Ok(host.clone()),
        }
    }

    /// Removes the port; with `only`, just if it is that port.
    pub(crate) fn strip_port(&mut self, only: Option<u16>) {
        let Some((name, port)) = split(self.as_str()) else { return };
        let Some(port) = port.strip_prefix(':') else { return };
        if only.is_none_or(|only| port.parse() == Ok(only))
            && let Ok(name) = HeaderValue::from_str(name)
        {
            self.0 = Source::Header(name);
        }
    }

    /// Returns `None` if the host is not one that an upstream and a route would read alike.
    fn canonical(self) -> Option<Self> {
        let (name, port) = split(self.as_str())?;
        match name.strip_suffix('.') {
            None => Some(self),
            Some(name) => {
                let value = HeaderValue::try_from(format!("{name}{port}")).ok()?;
                Some(Self(Source::Header(value)))
            }
        }
    }
}

/// Splits an authority into its host and its port with the leading colon. Returns `None` unless the host is a name,
/// an IPv4 address or an IPv6 address in brackets. Userinfo and characters that RFC 3986 would escape are rejected:
/// DNS has no such names.
fn split(authority: &str) -> Option<(&str, &str)> {
    let end = match authority.starts_with('[') {
        true => authority.find(']')? + 1,
        false => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(end);
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host_is_valid = match literal {
        Some(address) => address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte)),
        None => is_name(host),
    };
    let port_is_valid = port.bytes().skip(1).all(|byte| byte.is_ascii_digit())
        && port.bytes().next().is_none_or(|byte| byte == b':');
    (host_is_valid && port_is_valid).then_some((host, port))
}

fn is_name(host: &str) -> bool {
    let mut before = b'.';
    for byte in host.bytes() {
        let is_valid = match byte {
            b'.' => before != b'.',
            _ => byte.is_ascii_alphanumeric() || b"-_~".contains(&byte),
        };
        if !is_valid {
            return false;
        }
        before = byte;
    }
    !host.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(target: &str, host: Option<&[u8]>, version: Version) -> Result<Option<String>, &'static str> {
        let mut headers = HeaderMap::new();
        if let Some(host) = host {
            headers.insert(HOST, HeaderValue::from_bytes(host).expect("a value"));
        }
        let found = effective(&target.parse().expect("a target"), &headers, version)?;
        Ok(found.map(|authority| authority.as_str().to_owned()))
    }

    #[test]
    fn the_target_counts_then_the_header() {
        for (target, host, version, expected) in [
            ("/", Some("a"), Version::HTTP_11, Some("a")),
            ("/", Some("a.example.:443"), Version::HTTP_11, Some("a.example:443")),
            ("/", Some("[::1]:443"), Version::HTTP_11, Some("[::1]:443")),
            ("/", Some(""), Version::HTTP_11, None),
            ("/", None, Version::HTTP_10, None),
            ("http://b:80/", Some("a"), Version::HTTP_11, Some("b:80")),
            ("https://b/", None, Version::HTTP_2, Some("b")),
            ("https://b/", Some("B"), Version::HTTP_2, Some("b")),
            ("/", Some("a"), Version::HTTP_2, Some("a")),
        ] {
            let found = of(target, host.map(str::as_bytes), version);
            assert_eq!(found.as_ref().map(Option::as_deref), Ok(expected), "{target} {host:?}");
        }
    }

    #[test]
    fn a_port_is_stripped_as_configured() {
        for (host, only, expected) in [
            ("a.example:443", None, "a.example"),
            ("a.example:443", Some(443), "a.example"),
            ("a.example:443", Some(8443), "a.example:443"),
            ("[::1]:443", None, "[::1]"),
            ("a.example", None, "a.example"),
        ] {
            let mut authority = Authority(Source::Header(HeaderValue::from_static(host)));
            authority.strip_port(only);
            assert_eq!(authority.as_str(), expected, "{host} {only:?}");
        }
    }

    #[test]
    fn what_two_readers_would_read_differently_is_refused() {
        let hosts: [&[u8]; 16] = [
            b"\xff", b"a b", b"a/b", b"u@a", b"a,b", b"a?b", b"a#b", b"%61", b"a:b", b"a:1:2", b"[::1",
            b"[::1]x", b".", b"a..", b".a", b":443",
        ];
        for host in hosts {
            assert!(of("/", Some(host), Version::HTTP_11).is_err(), "{host:?}");
        }
        assert!(of("/", None, Version::HTTP_11).is_err());
        assert!(of("http://a/", None, Version::HTTP_11).is_err());
        assert!(of("/", None, Version::HTTP_2).is_err());
        assert!(of("/", None, Version::HTTP_3).is_err());
        assert!(of("https://a/", Some(b"b"), Version::HTTP_3).is_err());
        assert!(of("https://a/", Some(b"b"), Version::HTTP_2).is_err());
        assert!(of("https://u@a/", None, Version::HTTP_2).is_err());
    }
}
