//! Who may use which key for what, and how much.

use crate::model::Problem;
use std::{fmt, num::NonZeroUsize};

/// Who may use which key for what, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Policy {
    /// Without rules, every client that the CA vouches for may sign with every key, and none may decrypt; and on Unix
    /// sockets the user that runs the server, and root. With rules, who is not named is refused.
    pub rules: Option<Vec<Rule>>,
}

/// What some clients may do. Of several rules for one client, all hold; limits are those of the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Clients by any of their names.
    pub client: Pattern,
    /// Keys by their names: file names without ending, or key identifiers in hexadecimal.
    pub keys: Vec<Pattern>,
    /// May sign.
    pub sign: bool,
    /// May decrypt: whoever may can read what was encrypted to the key, and forge some signatures by asking often
    /// (Bleichenbacher 1998).
    pub decrypt: bool,
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
}

/// A name, or a name with one `*` for any text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Default for Limits {
    fn default() -> Self {
        Self { rate: None, in_flight: NonZeroUsize::MIN.saturating_add(4095) }
    }
}

impl Policy {
    /// Whether it names clients, so that a Unix socket can be opened to other users.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
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

    /// Whether this name is meant. DNS names compare without case.
    pub fn fits(&self, name: &str) -> bool {
        match self.0.split_once('*') {
            None => self.0.eq_ignore_ascii_case(name),
            Some((start, end)) => {
                let long_enough = name.len() >= start.len() + end.len();
                let head = name.get(..start.len()).is_some_and(|head| head.eq_ignore_ascii_case(start));
                let tail = || name.get(name.len() - end.len()..);
                long_enough && head && tail().is_some_and(|tail| tail.eq_ignore_ascii_case(end))
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
    use super::Pattern;

    #[test]
    fn patterns() {
        let fits = |pattern, name| Pattern::new(pattern).unwrap().fits(name);
        assert!(fits("*", "") && fits("*", "anything") && fits("Shop", "shop"));
        assert!(fits("*.edge.example", "a.EDGE.example") && !fits("*.edge.example", "edge.example"));
        assert!(fits("spiffe://x/*/y", "spiffe://x/a/b/y") && !fits("ab*ba", "aba"));
        assert!(!fits("shop", "shop2") && !fits("*a", "\u{e9}"));
        assert!(Pattern::new("a*b*").is_err() && Pattern::new(" ").is_err());
    }
}
