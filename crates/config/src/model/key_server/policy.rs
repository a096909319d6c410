//! Access policy of a key server: keys, operations and limits of each client.

use crate::model::Problem;
use std::{fmt, net::IpAddr, num::NonZeroUsize};

/// The access policy of a key server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Rules. With `None`, every client with a certificate of the CA may sign with every key, and do nothing else; on
    /// Unix sockets, the user that runs the server and root may. With rules, clients without a rule are refused.
    pub rules: Option<Vec<Rule>>,
}

/// Permissions of a group of clients. If several rules match a client, all of them apply; its limits are those of the
/// first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// A pattern that one of the client's names must match.
    pub client: ClientPattern,
    /// Patterns of key names: file names without extension, or key identifiers in hexadecimal.
    pub keys: Vec<Pattern>,
    /// Whether signing is allowed.
    pub sign: bool,
    /// Whether decryption is allowed: such a client can read data encrypted to the key, and forge signatures with
    /// many requests (Bleichenbacher 1998).
    pub decrypt: bool,
    /// Whether the client may generate and remove keys, for certificates that it orders.
    pub generate: bool,
    /// The limits.
    pub limits: Limits,
}

/// Limits of one client, over all its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum number of operations per second, which is also the burst; more are refused.
    pub rate: Option<NonZeroUsize>,
    /// Maximum number of operations in flight; more wait on the client's side.
    pub in_flight: NonZeroUsize,
    /// Maximum number of generated keys of the client that exist at the same time.
    pub generated_keys: NonZeroUsize,
}

/// A name, or a name with one `*` for any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

/// A pattern for names of one kind. A name of another kind never matches, even if its text does: a CA that is trusted
/// for mail addresses must not be able to make a client the user `uid:0` of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientPattern {
    kind: ClientKind,
    text: Pattern,
}

/// The kind of names that a pattern matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClientKind {
    /// `*`: all kinds of names in a certificate.
    Certificate,
    /// No explicit kind: a DNS name, or a common name.
    Host,
    Only(NameKind),
}

/// The kind of a client's name: a subject alternative name (RFC 5280 section 4.2.1.6), the common name, or the user
/// reported by the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameKind {
    /// `dNSName`.
    Dns,
    /// `uniformResourceIdentifier`.
    Uri,
    /// `rfc822Name`.
    Email,
    /// `iPAddress`.
    Ip,
    /// The common name of a certificate without alternative names.
    Common,
    /// The user of a process of this machine.
    Uid,
}

const PREFIXES: [(&str, NameKind); 6] = [
    ("dns:", NameKind::Dns),
    ("uri:", NameKind::Uri),
    ("email:", NameKind::Email),
    ("ip:", NameKind::Ip),
    ("cn:", NameKind::Common),
    ("uid:", NameKind::Uid),
];

impl Default for Limits {
    fn default() -> Self {
        let count = |more| NonZeroUsize::MIN.saturating_add(more);
        Self { rate: None, in_flight: count(4095), generated_keys: count(99) }
    }
}

impl Policy {
    /// Returns whether the policy names clients, so that a Unix socket can be opened to other users.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }
}

impl ClientPattern {
    /// Reads a pattern. The kind is given by a prefix (`dns:`, `uri:`, `email:`, `ip:`, `cn:`, `uid:`) or inferred: a
    /// text with `://` is a URI, one with `@` a mail address, an IP address is an address, and any other text is a
    /// host.
    ///
    /// # Errors
    /// If it is empty, has more than one `*`, or is a user that is not a number.
    pub fn new(text: &str) -> Result<Self, Problem> {
        let said = PREFIXES.iter().find_map(|(prefix, kind)| Some((text.strip_prefix(prefix)?, *kind)));
        if let Some((user, NameKind::Uid)) = said
            && user != "*"
            && user.parse::<u32>().is_err()
        {
            let message = format!("`{}` is not a user id", user.escape_debug());
            return Err(Problem::new(message, "write a number, as `id -u` shows it, or `*`"));
        }
        let (text, kind) = match said {
            Some((text, kind)) => (text, ClientKind::Only(kind)),
            None if text == "*" => (text, ClientKind::Certificate),
            None if text.contains("://") => (text, ClientKind::Only(NameKind::Uri)),
            None if text.contains('@') => (text, ClientKind::Only(NameKind::Email)),
            None if text.parse::<IpAddr>().is_ok() => (text, ClientKind::Only(NameKind::Ip)),
            None => (text, ClientKind::Host),
        };
        Ok(Self { kind, text: Pattern::new(text)? })
    }

    /// Returns a pattern for every client with a certificate.
    pub fn any() -> Self {
        Self { kind: ClientKind::Certificate, text: Pattern::any() }
    }

    /// Returns whether the pattern matches this name. URIs and mail addresses are compared case-sensitively.
    pub fn fits(&self, kind: NameKind, name: &str) -> bool {
        let is_kind = match self.kind {
            ClientKind::Certificate => kind != NameKind::Uid,
            ClientKind::Host => matches!(kind, NameKind::Dns | NameKind::Common),
            ClientKind::Only(only) => kind == only,
        };
        is_kind
            && match kind {
                NameKind::Uri | NameKind::Email => self.text.fits_exactly(name),
                _ => self.text.fits(name),
            }
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty or has more than one `*`.
    pub fn new(text: &str) -> Result<Self, Problem> {
        match text.matches('*').count() {
            _ if text.trim().is_empty() => {
                Err(Problem::new("the name is empty", "write a name, or `*` for all"))
            }
            0 | 1 => Ok(Self(text.to_owned())),
            _ => Err(Problem::new(format!("`{}` has more than one `*`", text.escape_debug()), "use one")),
        }
    }

    /// Returns a pattern that matches every name.
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    /// Returns whether the pattern matches this name, ignoring case.
    pub fn fits(&self, name: &str) -> bool {
        self.fits_by(name, str::eq_ignore_ascii_case)
    }

    fn fits_exactly(&self, name: &str) -> bool {
        self.fits_by(name, |one, other| one == other)
    }

    fn fits_by(&self, name: &str, same: fn(&str, &str) -> bool) -> bool {
        match self.0.split_once('*') {
            None => same(&self.0, name),
            Some((start, end)) => {
                let long_enough = name.len() >= start.len() + end.len();
                let head = name.get(..start.len()).is_some_and(|head| same(head, start));
                let tail = || name.get(name.len() - end.len()..);
                long_enough && head && tail().is_some_and(|tail| same(tail, end))
            }
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{ClientPattern, NameKind, Pattern};

    #[test]
    fn patterns() {
        let fits = |pattern, name| Pattern::new(pattern).unwrap().fits(name);
        assert!(fits("*", "") && fits("*", "anything") && fits("Shop", "shop"));
        assert!(fits("*.edge.example", "a.EDGE.example") && !fits("*.edge.example", "edge.example"));
        assert!(fits("spiffe://x/*/y", "spiffe://x/a/b/y") && !fits("ab*ba", "aba"));
        assert!(!fits("shop", "shop2") && !fits("*a", "\u{e9}"));
        assert!(Pattern::new("a*b*").is_err() && Pattern::new(" ").is_err());
    }

    #[test]
    fn names_of_another_kind_are_not_meant() {
        use NameKind::{Common, Dns, Email, Ip, Uid, Uri};
        const NAMES: [(NameKind, &str); 8] = [
            (Dns, "a.example"),
            (Dns, "uid:33"),
            (Uri, "spiffe://a/one"),
            (Uri, "https://x.example"),
            (Email, "root@x.example"),
            (Ip, "192.0.2.1"),
            (Common, "192.0.2.1"),
            (Uid, "33"),
        ];
        let cases: [(&str, &[usize]); 13] = [
            ("*", &[0, 1, 2, 3, 4, 5, 6]),
            ("a.example", &[0]),
            ("*.example", &[0]),
            ("uid:33", &[7]),
            ("uid:*", &[7]),
            ("spiffe://a/*", &[2]),
            ("spiffe://A/*", &[]),
            ("*@x.example", &[4]),
            ("192.0.2.1", &[5]),
            ("cn:192.0.2.1", &[6]),
            ("dns:uid:33", &[1]),
            ("uri:*", &[2, 3]),
            ("email:*", &[4]),
        ];
        for (pattern, expected) in cases {
            let pattern = ClientPattern::new(pattern).unwrap();
            let fits = |index: &usize| pattern.fits(NAMES[*index].0, NAMES[*index].1);
            let found: Vec<_> = (0..NAMES.len()).filter(fits).collect();
            assert_eq!(found, expected, "{pattern:?}");
        }
        assert!(ClientPattern::new("uid:www-data").is_err() && ClientPattern::new("dns:").is_err());
    }
}
