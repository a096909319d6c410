//! Addresses of key servers.

use crate::model::Problem;
use std::{fmt, path::PathBuf, str::FromStr};

/// Default TCP port of key servers.
pub const PORT: u16 = 2407;

/// A TCP host and port, or a Unix socket.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// Mutual TLS over TCP.
    Tcp {
        /// A name or an IP address; the server's certificate must be for it.
        host: String,
        /// The port; [`PORT`] by default.
        port: u16,
    },
    /// A Unix socket of this machine, without TLS: the kernel identifies the peer to each end.
    Unix(PathBuf),
}

/// `host`, `host:port`, `[::1]:2407`, or `unix:/path`.
impl FromStr for Address {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err(Problem::new("the path of the socket is missing", "write unix:/run/quadrille/keys.sock"))
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !host.contains(':') || host.starts_with('[') && host.ends_with(']') => {
                let number = port.parse().ok().filter(|port| *port != 0);
                (
                    host,
                    number.ok_or_else(|| {
                        Problem::new(format!("`{port}` is not a port"), "ports are 1 to 65535")
                    })?,
                )
            }
            _ => (text, PORT),
        };
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let good = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b':');
        if bare.is_empty() || !bare.bytes().all(good) {
            return Err(Problem::new(
                format!("`{}` is not a key server", text.escape_debug()),
                format!("write host:port (the default port is {PORT}), or unix:/path"),
            ));
        }
        Ok(Self::Tcp { host: bare.to_owned(), port })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn as_people_write_them() {
        let cases = [
            ("keys.example.com", Some("keys.example.com:2407")),
            ("keys:99", Some("keys:99")),
            ("127.0.0.1:2407", Some("127.0.0.1:2407")),
            ("[::1]:5", Some("[::1]:5")),
            ("::1", Some("[::1]:2407")),
            ("unix:/run/keys.sock", Some("unix:/run/keys.sock")),
            ("unix:", None),
            ("", None),
            ("keys:0", None),
            ("keys:none", None),
            ("https://keys", None),
            ("two words", None),
        ];
        for (text, shown) in cases {
            let parsed = text.parse::<Address>().ok().map(|address| address.to_string());
            assert_eq!(parsed.as_deref(), shown, "{text}");
        }
    }
}
