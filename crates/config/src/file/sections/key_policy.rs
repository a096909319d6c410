//! Who may use which key of a key server: a file of its own.

use crate::{
    Field, Problem,
    file::schema::{Key, Preset, Section, not_shown},
    model::key_server::{ClientPattern, Limits, Pattern, Policy, Rule},
    values::count,
    words::{Word, word},
};
use std::num::NonZeroUsize;

pub(in crate::file) const EMPTY_POLICY: [&str; 2] = ["the file is empty", "it needs `clients`"];

pub(super) const KEY_POLICY: Section<Policy> = Section {
    path: "",
    about: "Who may use which key, for what, and how much.",
    keys: &[Key {
        name: "clients",
        value: "list of mappings",
        preset: Preset::Required,
        about: "The clients that are served. Others are refused, even if the client CA vouches for them.",
        needs_restart: false,
        read: |field, policy| policy.rules = Some(rules(field)),
        show: not_shown,
    }],
};

pub(super) const CLIENT: Section<RuleDraft, Rule> = Section {
    path: "clients[]",
    about: "What some clients may do. Of several entries for one client all hold; limits are those of the first.",
    keys: &[
        Key {
            name: "client",
            value: "name, with at most one `*`",
            preset: Preset::Required,
            about: "A subject alternative name of the client's certificate: a DNS name, a URI such as a SPIFFE id, a mail \
                    or an IP address; without any, its common name. Clients on Unix sockets are `uid:33`. A name is of \
                    the kind that it looks like, or that stands in front: `dns:`, `uri:`, `email:`, `ip:`, `cn:`, `uid:`; \
                    names of other kinds are not meant. `*` is everybody with a certificate, and no user.",
            needs_restart: false,
            read: |field, draft| draft.client = field.parse(ClientPattern::new),
            show: not_shown,
        },
        Key {
            name: "keys",
            value: "list of names, each with at most one `*`",
            preset: Preset::Is("[\"*\"]"),
            about: "File names without their endings, or key identifiers in hexadecimal; of keys that were generated, \
                    also what they were generated for, such as `www.example.com.ecdsa-p256`. A client does not learn \
                    that other keys exist.",
            needs_restart: false,
            read: |field, draft| draft.keys = parsed(field, Pattern::new),
            show: not_shown,
        },
        Key {
            name: "operations",
            value: "list of `sign`, `decrypt` and `generate`",
            preset: Preset::Is("[sign]"),
            about: "`decrypt` is for RSA key exchange in TLS 1.2. Whoever may ask for it can read recorded connections of \
                    that kind, and can misuse the key server as an oracle (Bleichenbacher): give it to nobody who does \
                    not need it. `generate` has keys made here for [certificates that are ordered]\
                    (../guide/acme.md#keys-on-a-key-server), with names that `keys` covers, and removes such keys again; \
                    others cannot be removed. Who uses them needs `sign` as well.",
            needs_restart: false,
            read: |field, draft| draft.operations = parsed(field, word),
            show: not_shown,
        },
        Key {
            name: "rate",
            value: "count",
            preset: Preset::Means("no limit"),
            about: "Operations a second, all connections of one client together; more are refused.",
            needs_restart: false,
            read: |field, draft| draft.limits.rate = field.parse(count),
            show: not_shown,
        },
        Key {
            name: "in_flight",
            value: "count",
            preset: Preset::Is("4096"),
            about: "Operations at the same time; more wait on the client's side.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.limits.in_flight, most),
            show: not_shown,
        },
        Key {
            name: "generated_keys",
            value: "count",
            preset: Preset::Is("100"),
            about: "Keys that were generated for one client and are there at the same time; more are refused. A \
                    certificate that is renewed has two, and three while it is ordered. The key server has at most \
                    10,000 for all clients.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.limits.generated_keys, most),
            show: not_shown,
        },
    ],
};

/// What has been read of a rule.
pub(super) struct RuleDraft {
    client: Option<ClientPattern>,
    keys: Vec<Pattern>,
    operations: Vec<Allowed>,
    limits: Limits,
}

/// What a key server's policy file says.
pub(in crate::file) fn key_policy(root: &Field<'_>) -> Option<Policy> {
    if root.is_null() {
        return root.fail(EMPTY_POLICY);
    }
    let mut policy = Policy::default();
    KEY_POLICY.read(root, &mut policy)?;
    Some(policy)
}

fn rules(field: &Field<'_>) -> Vec<Rule> {
    // Nobody at all is a policy, too.
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
