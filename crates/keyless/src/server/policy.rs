//! Policy: permissions of a client.

use super::{Identity, key_origin::Generated};
use quadrille_config::model::key_server::{ClientPattern, Limits, NameKind, Pattern, Policy, Rule};

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

    /// Returns whether the client may remove a generated key of these names: its own, or one that was generated for a
    /// client of the same rule, such as another gateway of a fleet.
    pub(super) fn may_remove(&self, client: &Identity, key: &Generated, names: &[&str]) -> bool {
        let own = client.names().iter().any(|name| {
            (name.kind() == NameKind::Uid) == key.client.starts_with(USER) && name.to_string() == key.client
        });
        let allows = |rule: &&Rule| rule.generate && covers(rule, names);
        self.rules.iter().filter(allows).any(|rule| own || names_client(&rule.client, &key.client))
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

/// Start of the name of a user of this machine.
const USER: &str = "uid:";

/// Returns whether a pattern names the client that a key was generated for, whose name is stored without its kind
/// unless it is a user.
fn names_client(pattern: &ClientPattern, client: &str) -> bool {
    const KINDS: [NameKind; 5] =
        [NameKind::Dns, NameKind::Uri, NameKind::Email, NameKind::Ip, NameKind::Common];
    match client.strip_prefix(USER) {
        Some(user) => pattern.fits(NameKind::Uid, user),
        None => KINDS.iter().any(|kind| pattern.fits(*kind, client)),
    }
}

fn covers(rule: &Rule, names: &[&str]) -> bool {
    rule.keys.iter().any(|pattern| names.iter().any(|name| pattern.fits(name)))
}

#[cfg(test)]
mod tests {
    use super::{ClientPattern, Generated, Grant, Identity, Limits, OperationKind, Pattern, Policy, Rule};

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
    fn a_generated_key_is_removed_by_its_client_or_by_one_of_the_same_rule() {
        let generate = |client, keys| Rule { generate: true, ..rule(client, &[keys], false) };
        let rules = vec![generate("uid:7", "a*"), generate("uid:*", "b*"), rule("uid:5", &["a*"], false)];
        let policy = Policy { rules: Some(rules) };
        let may = |uid, client: &str, name: &str| {
            let (user, reference) = (Identity::of_user(uid), name.to_owned());
            let key = Generated { client: client.to_owned(), reference };
            Grant::new(&policy, &user).unwrap().may_remove(&user, &key, &[name])
        };
        assert!(may(7, "uid:7", "a1") && may(91, "uid:91", "b1") && may(91, "uid:92", "b1"));
        for (uid, client, name) in [
            (7, "uid:91", "a1"),
            (91, "uid:7", "a1"),
            (7, "gateway", "b1"),
            (7, "uid:7", "c"),
            (5, "uid:5", "a1"),
        ] {
            assert!(!may(uid, client, name), "{uid} {client} {name}");
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
