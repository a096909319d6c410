//! The policy of a key server, in its own file: the keys and operations that each client may use.

use crate::{
    Field, Problem,
    enums::{Word, word},
    file::schema::{Key, Preset, Section, not_shown},
    model::key_server::{ClientPattern, Limits, Pattern, Policy, Rule},
    values::count,
};
use std::num::NonZeroUsize;

pub(in crate::file) const EMPTY_POLICY: [&str; 2] = ["the file is empty", "it needs `clients`"];

pub(super) const KEY_POLICY: Section<Policy> = Section {
    path: "",
    about: "The keys and operations that each client may use, and its limits.",
    keys: &[Key::new(
        "clients",
        "list of mappings",
        Preset::Required,
        "The clients that are served. Others are refused, even if the client CA vouches for them.",
        |field, policy| policy.rules = Some(rules(field)),
        not_shown,
    )],
};

pub(super) const CLIENT: Section<RuleDraft, Rule> = Section {
    path: "clients[]",
    about: "Permissions of a group of clients. If several entries match a client, all of them apply; its \
            limits are those of the first.",
    keys: &[
        Key::new(
            "client",
            "name, with at most one `*`",
            Preset::Required,
            "A subject alternative name of the client's certificate: a DNS name, a URI such as a SPIFFE id, a \
                    mail or an IP address; without any, its common name. Clients on Unix sockets are `uid:33`. The \
                    kind of a name is inferred from its form, or given by a prefix: `dns:`, `uri:`, `email:`, `ip:`, \
                    `cn:`, `uid:`; names of other kinds do not match. `*` matches every client with a certificate, \
                    and no Unix user.",
            |field, draft| draft.client = field.parse(ClientPattern::new),
            not_shown,
        ),
        Key::new(
            "keys",
            "list of names, each with at most one `*`",
            Preset::Is("[\"*\"]"),
            "File names without their endings, or key identifiers in hexadecimal; for generated keys, also the \
                    certificate they were generated for, such as `www.example.com.ecdsa-p256`. Other keys are hidden \
                    from the client.",
            |field, draft| draft.keys = parsed(field, Pattern::new),
            not_shown,
        ),
        Key::new(
            "operations",
            "list of `sign`, `decrypt` and `generate`",
            Preset::Is("[sign]"),
            "`decrypt` is for RSA key exchange in TLS 1.2. A client with this permission can decrypt recorded \
                    connections of that kind, and can misuse the key server as an oracle (Bleichenbacher): grant it \
                    only where it is needed. `generate` generates keys here for [certificates that are \
                    ordered](../guide/acme.md#keys-on-a-key-server), with names that `keys` covers, and removes \
                    these keys, and those of other clients of this entry; others cannot be removed. Using them \
                    needs `sign` as well.",
            |field, draft| draft.operations = parsed(field, word),
            not_shown,
        ),
        Key::new(
            "rate",
            "count",
            Preset::Means("no limit"),
            "Operations per second, for all connections of one client together; more are refused.",
            |field, draft| draft.limits.rate = field.parse(count),
            not_shown,
        ),
        Key::new(
            "in_flight",
            "count",
            Preset::Is("4096"),
            "Operations in flight; more wait on the client's side.",
            |field, draft| field.set(&mut draft.limits.in_flight, most),
            not_shown,
        ),
        Key::new(
            "generated_keys",
            "count",
            Preset::Is("100"),
            "Generated keys that exist at the same time for one client; more are refused. A certificate \
                    that is renewed has two, and three while it is ordered. The key server has at most 10,000 for \
                    all clients.",
            |field, draft| field.set(&mut draft.limits.generated_keys, most),
            not_shown,
        ),
    ],
};

/// Values read for a rule.
pub(super) struct RuleDraft {
    client: Option<ClientPattern>,
    keys: Vec<Pattern>,
    operations: Vec<Allowed>,
    limits: Limits,
}

/// Reads the policy file of a key server.
pub(in crate::file) fn key_policy(root: &Field<'_>) -> Option<Policy> {
    if root.is_null() {
        return root.fail(EMPTY_POLICY);
    }
    let mut policy = Policy::default();
    KEY_POLICY.read(root, &mut policy)?;
    Some(policy)
}

fn rules(field: &Field<'_>) -> Vec<Rule> {
    // An empty list is valid: no client is allowed.
    let items = if field.is_empty_list() { Vec::new() } else { field.items() };
    items.iter().filter_map(rule).collect()
}

fn rule(field: &Field<'_>) -> Option<Rule> {
    let mut draft = RuleDraft {
        client: None,
        keys: vec![Pattern::any()],
        operations: vec![Allowed::Sign],
        limits: Limits::default(),
    };
    CLIENT.read(field, &mut draft)?;
    Some(Rule {
        client: draft.client?,
        keys: draft.keys,
        sign: draft.operations.contains(&Allowed::Sign),
        decrypt: draft.operations.contains(&Allowed::Decrypt),
        generate: draft.operations.contains(&Allowed::Generate),
        limits: draft.limits,
    })
}

fn parsed<T>(field: &Field<'_>, parser: fn(&str) -> Result<T, Problem>) -> Vec<T> {
    field.items_or_one().iter().filter_map(|item| item.parse(parser)).collect()
}

fn most(text: &str) -> Result<NonZeroUsize, Problem> {
    const MOST: usize = 1_000_000;
    match count(text)? {
        count if count.get() > MOST => Err(Problem::new(format!("more than {MOST}"), "write less")),
        count => Ok(count),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Sign,
    Decrypt,
    Generate,
}

impl Word for Allowed {
    const WHAT: &'static str = "an operation";
    const WORDS: &'static [(&'static str, Self)] =
        &[("sign", Self::Sign), ("decrypt", Self::Decrypt), ("generate", Self::Generate)];
}
