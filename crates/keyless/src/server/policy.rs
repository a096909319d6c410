//! Policy: permissions of a client.

use super::Identity;
use quadrille_config::model::key_server::{ClientPattern, Limits, Pattern, Policy, Rule};

/// Permissions of one client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grant {
    rules: Vec<Rule>,
    pub(super) limits: Limits,
}

/// Kinds of operations in a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum OperationKind {
    Sign,
    Decrypt,
    /// Generate a key, or remove a generated one.
    Generate,
}

impl Grant {
    /// Returns the permissions of this client; `None` if it has none, and then it is not served at all.
    pub(super) fn new(policy: &Policy, client: &Identity) -> Option<Self> {
        let Some(rules) = &policy.rules else { return Some(Self::default_for_all()) };
        let named =
            |rule: &&Rule| client.names().iter().any(|name| rule.client.fits(name.kind(), &name.text()));
        let rules: Vec<Rule> = rules.iter().filter(named).cloned().collect();
        let limits = rules.first()?.limits;
        Some(Self { rules, limits })
    }

    fn default_for_all() -> Self {
        let limits = Limits::default();
        let (client, keys) = (ClientPattern::any(), vec![Pattern::any()]);
        let rule = Rule { client, keys, sign: true, decrypt: false, generate: false, limits };
        Self { rules: vec![rule], limits }
    }

    /// Returns whether the client may perform this with a key of any of these names.
    pub(super) fn allows(&self, kind: OperationKind, names: &[&str]) -> bool {
        self.rules.iter().any(|rule| kind.is_allowed_by(rule) && covers(rule, names))
    }

    /// Returns whether the client has any permission for a key of any of these names; otherwise it does not learn
    /// that the key exists.
    pub(super) fn knows(&self, names: &[&str]) -> bool {
        self.rules.iter().any(|rule| covers(rule, names))
    }
}

impl OperationKind {
    /// Name in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Decrypt => "decrypt",
            Self::Generate => "generate",
        }
    }

    fn is_allowed_by(self, rule: &Rule) -> bool {
        match self {
            Self::Sign => rule.sign,
            Self::Decrypt => rule.decrypt,
            Self::Generate => rule.generate,
        }
    }
}

fn covers(rule: &Rule, names: &[&str]) -> bool {
    rule.keys.iter().any(|pattern| names.iter().any(|name| pattern.fits(name)))
}

#[cfg(test)]
mod tests {
    use super::{ClientPattern, Grant, Identity, Limits, OperationKind, Pattern, Policy, Rule};

    fn rule(client: &str, keys: &[&str], decrypt: bool) -> Rule {
        let pattern = |text: &&str| Pattern::new(text).unwrap();
        Rule {
            client: ClientPattern::new(client).unwrap(),
            keys: keys.iter().map(pattern).collect(),
            sign: true,
            decrypt,
            generate: false,
            limits: Limits::default(),
        }
    }

    #[test]
    fn without_rules_all_sign_and_none_does_anything_else() {
        let grant = Grant::new(&Policy::default(), &Identity::of_user(7)).unwrap();
        assert!(grant.allows(OperationKind::Sign, &["any"]));
        for kind in [OperationKind::Decrypt, OperationKind::Generate] {
            assert!(!grant.allows(kind, &["any"]), "{kind:?}");
        }
    }

    #[test]
    fn rules_add_up_and_unnamed_clients_get_nothing() {
        let rules = vec![rule("uid:7", &["shop"], false), rule("uid:*", &["mail-*"], true)];
        let policy = Policy { rules: Some(rules) };
        let grant = |uid| Grant::new(&policy, &Identity::of_user(uid));
        let both: Grant = grant(7).unwrap();
        assert!(
            both.allows(OperationKind::Sign, &["shop"]) && !both.allows(OperationKind::Decrypt, &["shop"])
        );
        assert!(both.allows(OperationKind::Decrypt, &["mail-1"]) && !both.knows(&["mail"]));
        assert!(!grant(8).unwrap().knows(&["shop", "0011"]));
        assert_eq!(
            Grant::new(&Policy { rules: Some(vec![rule("edge", &["*"], true)]) }, &Identity::of_user(7)),
            None
        );
    }
}
