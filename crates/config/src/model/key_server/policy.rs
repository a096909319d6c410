//! Who may use which key for what, and how much.

use crate::model::Problem;
use std::{fmt, net::IpAddr, num::NonZeroUsize};

/// Who may use which key for what, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Without rules, every client that the CA vouches for may sign with every key, and none may do anything else; and
    /// on Unix sockets the user that runs the server, and root. With rules, who is not named is refused.
    pub rules: Option<Vec<Rule>>,
}

/// What some clients may do. Of several rules for one client, all hold; limits are those of the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Clients by any of their names of this kind.
    pub client: ClientPattern,
    /// Keys by their names: file names without ending, or key identifiers in hexadecimal.
    pub keys: Vec<Pattern>,
    /// May sign.
    pub sign: bool,
    /// May decrypt: whoever may can read what was encrypted to the key, and forge some signatures by asking often
    /// (Bleichenbacher 1998).
    pub decrypt: bool,
    /// May have keys generated here and removed again, for certificates that it orders.
    pub generate: bool,
    /// How much.
    pub limits: Limits,
}

/// How much one client may ask for, all its connections together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Operations a second, and as many at once; more are refused.
    pub rate: Option<NonZeroUsize>,
    /// Operations at the same time; more wait on the client's side of the wire.
    pub in_flight: NonZeroUsize,
    /// Keys that were generated for the client and are there at the same time.
    pub generated_keys: NonZeroUsize,
}

/// A name, or a name with one `*` for any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

/// Names of one kind. A name of another kind is not meant, whatever its text: a CA that is trusted to vouch for mail
/// addresses must not be able to make somebody the user `uid:0` of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientPattern {
    kind: ClientKind,
    text: Pattern,
}

/// Which names a pattern is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClientKind {
    /// `*`: all that a certificate can have.
    Certificate,
    /// No kind is said: a DNS name, or a common name.
    Host,
    Only(NameKind),
}

/// What kind of name a client has: a subject alternative name (RFC 5280 section 4.2.1.6), the common name, or what the
/// kernel says.
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
    /// Whether it names clients, so that a Unix socket can be opened to other users.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }
}

impl ClientPattern {
    /// Reads a pattern. The kind is said in front (`dns:`, `uri:`, `email:`, `ip:`, `cn:`, `uid:`) or seen: what has `://`
    /// in it is a URI, what has `@` a mail address, what is an IP address is one, and everything else is a host.
    ///
    /// # Errors
    /// If it is empty, has more than one `*`, or is a user that is no number.
    pub fn new(text: &str) -> Result<Self, Problem> {
        let said = PREFIXES.iter().find_map(|(prefix, kind)| Some((text.strip_prefix(prefix)?, *kind)));
        if let Some((user, NameKind::Uid)) = said
            && user != "*"
            && user.parse::<u32>().is_err()
        {
            let message = format!("`{}` is no user id", user.escape_debug());
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

    /// Everybody who has a certificate.
    pub fn any() -> Self {
        Self { kind: ClientKind::Certificate, text: Pattern::any() }
    }

    /// Whether a client with this name is meant. URIs and mail addresses compare with case.
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

    /// Everything.
    pub fn any() -> Self {
        Self("*".to_owned())
    }

    /// Whether this name is meant, without case.
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
