//! The URL to measure.

use std::{
    fmt,
    net::{SocketAddr, ToSocketAddrs},
    str::FromStr,
};

/// `https://HOST[:PORT][/PATH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) path: String,
}

impl Target {
    /// Returns the address to connect to: the URL's host and port, or `--connect`'s.
    pub(super) fn resolve(&self, other: Option<&str>) -> Result<SocketAddr, String> {
        let addresses = match other {
            Some(other) => other.to_socket_addrs().map_err(|error| format!("--connect {other}: {error}")),
            None => (self.host.as_str(), self.port)
                .to_socket_addrs()
                .map_err(|error| format!("cannot resolve {}: {error}", self.host)),
        };
        addresses?.next().ok_or_else(|| format!("{} has no address", other.unwrap_or(&self.host)))
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |why: String| format!("{why}; write https://HOST[:PORT][/PATH]");
        let uri: http::Uri = text.parse().map_err(|error| wrong(format!("`{text}`: {error}")))?;
        match uri.scheme_str() {
            Some("https") => {}
            Some(other) => return Err(wrong(format!("`{other}` has no TLS handshakes to measure"))),
            None => return Err(wrong(format!("`{text}` has no scheme"))),
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(|| wrong("no host".to_owned()))?;
        Ok(Self {
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(443),
            path: uri.path_and_query().map_or("/", |path| path.as_str()).to_owned(),
        })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}:{}{}", self.host, self.port, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_with_and_without_port_and_path() {
        let parse = |text: &str| text.parse::<Target>().map(|target| target.to_string());
        assert_eq!(parse("https://example.com"), Ok("https://example.com:443/".to_owned()));
        assert_eq!(parse("https://[::1]:8443/a?b=c"), Ok("https://::1:8443/a?b=c".to_owned()));
        for wrong in ["http://example.com/", "example.com", "https://", "", "https://a b/", "ftp://x/"] {
            assert!(parse(wrong).unwrap_err().contains("https://HOST"), "{wrong}");
        }
    }
}
