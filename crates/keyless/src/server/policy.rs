//! Who may use which key for what, and how much.

use super::Identity;
use std::{fmt, num::NonZeroUsize};

/// Who may use which key for what, and how much.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// Without rules, every client that the CA vouches for may sign with every key, and none may decrypt; and on Unix
    /// sockets the user that runs the server, and root. With rules, who is not named is refused.
    pub rules: Option<Vec<Rule>>,
}

/// What some clients may do. Of several rules for one client, all hold; limits are those of the first.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Operations a second, and as many at once; more are refused.
    pub rate: Option<NonZeroUsize>,
    /// Operations at the same time; more wait on the client's side of the wire.
    pub in_flight: NonZeroUsize,
}

/// A name, or a name with one `*` for any text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(String);

/// What one client may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    rules: Vec<Rule>,
    pub(super) limits: Limits,
}

/// What a client wants to do with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Wish {
    Sign,
    Decrypt,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rate: None, in_flight: NonZeroUsize::MIN.saturating_add(4095) }
    }
}

impl Policy {
    /// What this client may do; `None` if nothing, and then it is not served at all.
    pub(super) fn grant(&self, client: &Identity) -> Option<Grant> {
        let Some(rules) = &self.rules else { return Some(Grant::default_for_all()) };
        let named = |rule: &&Rule| client.names().iter().any(|name| rule.client.fits(&name.to_string()));
        let rules: Vec<Rule> = rules.iter().filter(named).cloned().collect();
        let limits = rules.first()?.limits;
        Some(Grant { rules, limits })
    }

    /// Whether it names clients, so that a Unix socket can be opened to other users.
    pub fn has_rules(&self) -> bool {
        self.rules.is_some()
    }
}

impl Grant {
    fn default_for_all() -> Self {
        let limits = Limits::default();
        let client = Pattern::any();
        let rule = Rule { client: client.clone(), keys: vec![client], sign: true, decrypt: false, limits };
        Self { rules: vec![rule], limits }
    }

    /// Whether the client may do this with a key of any of these names.
    pub(super) fn allows(&self, wish: Wish, names: &[&str]) -> bool {
        self.rules.iter().any(|rule| rule.allows(wish) && rule.covers(names))
    }

    /// Whether the client may do anything with a key of any of these names; otherwise it need not learn that there is one.
    pub(super) fn knows(&self, names: &[&str]) -> bool {
        self.rules.iter().any(|rule| rule.covers(names))
    }
}

impl Rule {
    fn allows(&self, wish: Wish) -> bool {
        match wish {
            Wish::Sign => self.sign,
            Wish::Decrypt => self.decrypt,
        }
    }

    fn covers(&self, names: &[&str]) -> bool {
        self.keys.iter().any(|pattern| names.iter().any(|name| pattern.fits(name)))
    }
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If it is empty or has more than one `*`.
    pub fn new(text: &str) -> Result<Self, String> {
        match text.matches('*').count() {
            _ if text.trim().is_empty() => Err("the name is empty; write a name, or `*` for all".to_owned()),
            0 | 1 => Ok(Self(text.to_owned())),
            _ => Err(format!("`{}` has more than one `*`; use one", text.escape_debug())),
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
    use super::{Grant, Identity, Limits, Pattern, Policy, Rule, Wish};

    fn rule(client: &str, keys: &[&str], decrypt: bool) -> Rule {
        let pattern = |text: &&str| Pattern::new(text).unwrap();
        Rule {
            client: pattern(&client),
            keys: keys.iter().map(pattern).collect(),
            sign: true,
            decrypt,
            limits: Limits::default(),
        }
    }

    #[test]
    fn without_rules_all_sign_and_none_decrypts() {
        let grant = Policy::default().grant(&Identity::of_user(7)).unwrap();
        assert!(grant.allows(Wish::Sign, &["any"]) && !grant.allows(Wish::Decrypt, &["any"]));
    }

    #[test]
    fn rules_add_up_and_who_is_not_named_gets_nothing() {
        let rules = vec![rule("uid:7", &["shop"], false), rule("uid:*", &["mail-*"], true)];
        let policy = Policy { rules: Some(rules) };
        let grant = |uid| policy.grant(&Identity::of_user(uid));
        let both: Grant = grant(7).unwrap();
        assert!(both.allows(Wish::Sign, &["shop"]) && !both.allows(Wish::Decrypt, &["shop"]));
        assert!(both.allows(Wish::Decrypt, &["mail-1"]) && !both.knows(&["mail"]));
        assert!(!grant(8).unwrap().knows(&["shop", "0011"]));
        assert_eq!(
            Policy { rules: Some(vec![rule("edge", &["*"], true)]) }.grant(&Identity::of_user(7)),
            None
        );
    }

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
