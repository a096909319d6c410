//! Redis addresses: `redis://user:password@host:port/database` and variants.

use super::Problem;
use std::{
    fmt,
    hash::{Hash, Hasher},
    str::FromStr,
};
use zeroize::Zeroizing;

/// The address of a Redis. `redis://` is plain TCP, `rediss://` is TLS, `redis+cluster://` lists nodes of a cluster.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    /// The scheme.
    pub scheme: RedisScheme,
    /// Hosts and ports: one, or several of a cluster.
    pub nodes: Vec<(String, u16)>,
    /// The user, if Redis has an access list.
    pub user: Option<String>,
    /// The password; never shown.
    pub password: Option<Zeroizing<String>>,
    /// The database; always 0 in a cluster.
    pub database: u16,
}

/// The scheme of a Redis address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RedisScheme {
    /// Plain TCP.
    Plain,
    /// TLS.
    Tls,
    /// Nodes of a cluster, by plain TCP.
    Cluster,
}

const SCHEMES: [(&str, RedisScheme); 3] = [
    ("redis://", RedisScheme::Plain),
    ("rediss://", RedisScheme::Tls),
    ("redis+cluster://", RedisScheme::Cluster),
];
const PORT: u16 = 6379;

impl RedisAddress {
    /// Returns whether a text has the scheme of a Redis address.
    pub fn looks_like(text: &str) -> bool {
        SCHEMES.iter().any(|(scheme, _)| text.starts_with(scheme))
    }
}

impl FromStr for RedisAddress {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let known = SCHEMES.iter().find_map(|(prefix, scheme)| Some((text.strip_prefix(prefix)?, *scheme)));
        let (rest, scheme) = known.ok_or_else(|| {
            "a Redis address begins with redis://, rediss:// (TLS) or redis+cluster://, such as redis://127.0.0.1:6379"
                .to_owned()
        })?;
        let (login, place) =
            rest.rsplit_once('@').map_or((None, rest), |(login, place)| (Some(login), place));
        let (user, password) = login.map(credentials).transpose()?.unwrap_or_default();
        let (hosts, database) = place.split_once('/').unwrap_or((place, ""));
        let database = match database {
            "" => 0,
            digits => digits
                .parse()
                .map_err(|_| "what follows the host is the number of a database, such as /0".to_owned())?,
        };
        let nodes: Vec<_> = hosts.split(',').map(node).collect::<Result<_, _>>()?;
        match scheme {
            RedisScheme::Cluster if database != 0 => {
                return Err(Problem::new("a cluster has no databases", "remove the number"));
            }
            RedisScheme::Plain | RedisScheme::Tls if nodes.len() > 1 => {
                return Err(Problem::new(
                    "one Redis has one address",
                    "several nodes of a cluster are redis+cluster://A,B,C",
                ));
            }
            _ => {}
        }
        Ok(Self { scheme, nodes, user, password, database })
    }
}

fn credentials(login: &str) -> Result<(Option<String>, Option<Zeroizing<String>>), Problem> {
    let (user, password) =
        login.split_once(':').ok_or("write credentials as user:password@, or :password@")?;
    let user = decoded(user)?;
    let password = decoded(password)?;
    Ok(((!user.is_empty()).then_some(user), (!password.is_empty()).then(|| Zeroizing::new(password))))
}

/// Decodes percent-encoding (RFC 3986 section 2.1).
fn decoded(text: &str) -> Result<String, Problem> {
    let wrong = || Problem::new("in credentials, % begins two hexadecimal digits", "write % itself as %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let (digits, tail) = tail.split_at_checked(2).ok_or_else(wrong)?;
        let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| wrong())?);
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| wrong())
}

fn node(text: &str) -> Result<(String, u16), Problem> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return Err(Problem::new("the address has no host", "write it like redis://127.0.0.1:6379"));
    }
    let port = port.map_or(Ok(PORT), str::parse).ok().filter(|port| *port != 0);
    Ok((host.to_owned(), port.ok_or("a port is a number from 1 to 65535")?))
}

impl Hash for RedisAddress {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let password = self.password.as_ref().map(|password| password.as_str());
        (self.scheme, &self.nodes, &self.user, password, self.database).hash(state);
    }
}

/// Writes the address without the password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix =
            SCHEMES.iter().find(|(_, scheme)| *scheme == self.scheme).map_or("", |(prefix, _)| prefix);
        f.write_str(prefix)?;
        if self.user.is_some() || self.password.is_some() {
            let user = self.user.as_deref().unwrap_or_default();
            let hidden = if self.password.is_some() { ":***" } else { ":" };
            write!(f, "{user}{hidden}@")?;
        }
        for (index, (host, port)) in self.nodes.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{comma}{open}{host}{close}:{port}")?;
        }
        if self.database > 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> RedisAddress {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_read_and_shown_without_the_password() {
        for (text, shown) in [
            ("redis://localhost", "redis://localhost:6379"),
            ("redis://127.0.0.1:7000/2", "redis://127.0.0.1:7000/2"),
            ("rediss://:hunter2@cache.example:6380", "rediss://:***@cache.example:6380"),
            ("redis://app:p%40ss@[::1]:6379", "redis://app:***@[::1]:6379"),
            ("redis+cluster://a:7000,b:7001", "redis+cluster://a:7000,b:7001"),
        ] {
            assert_eq!(parse(text).to_string(), shown);
            assert_eq!(format!("{:?}", parse(text)), shown);
        }
        assert_eq!(**parse("redis://app:p%40ss@h").password.as_ref().unwrap(), *"p@ss");
        assert_eq!(parse("redis://:a@b@h").nodes, [("h".to_owned(), 6379)]);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, message) in [
            ("http://localhost", "begins with redis://"),
            ("redis://", "has no host"),
            ("redis://h:0", "a port is"),
            ("redis://h:x", "a port is"),
            ("redis://h/x", "number of a database"),
            ("redis://a,b", "redis+cluster://"),
            ("redis+cluster://a/1", "no databases"),
            ("redis://user@h", "user:password@"),
            ("redis://:%4@h", "two hexadecimal digits"),
        ] {
            let error = text.parse::<RedisAddress>().unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }
}
