//! Who may use which key of a key server: a file of its own.

use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::key_server::{Limits, Pattern, Policy, Rule},
    values::count,
    words::{Word, word},
};
use std::num::NonZeroUsize;

pub(in crate::file) const EMPTY_POLICY: &str = "the file is empty; it needs `clients`";

pub(super) const KEY_POLICY: Section = Section {
    path: "",
    about: "Who may use which key, for what, and how much.",
    keys: &[Key {
        name: "clients",
        value: "list of mappings",
        preset: Preset::Required,
        about: "The clients that are served. Others are refused, even if the client CA vouches for them.",
    }],
};

pub(super) const CLIENT: Section = Section {
    path: "clients[]",
    about: "What some clients may do. Of several entries for one client all hold; limits are those of the first.",
    keys: &[
        Key {
            name: "client",
            value: "name, with at most one `*`",
            preset: Preset::Required,
            about: "A subject alternative name of the client's certificate: a DNS name, a URI such as a SPIFFE id, a mail \
                    or an IP address; without any, its common name. Clients on Unix sockets are `uid:33`.",
        },
        Key {
            name: "keys",
            value: "list of names, each with at most one `*`",
            preset: Preset::Is("[\"*\"]"),
            about: "File names without their endings, or key identifiers in hexadecimal. A client does not learn that \
                    other keys exist.",
        },
        Key {
            name: "operations",
            value: "list of `sign` and `decrypt`",
            preset: Preset::Is("[sign]"),
            about: "`decrypt` is for RSA key exchange in TLS 1.2. Whoever may ask for it can read recorded connections of \
                    that kind, and can misuse the key server as an oracle (Bleichenbacher): give it to nobody who does \
                    not need it.",
        },
        Key {
            name: "rate",
            value: "count",
            preset: Preset::Means("no limit"),
            about: "Operations a second, all connections of one client together; more are refused.",
        },
        Key {
            name: "in_flight",
            value: "count",
            preset: Preset::Is("4096"),
            about: "Operations at the same time; more wait on the client's side.",
        },
    ],
};

/// What a key server's policy file says.
pub(in crate::file) fn key_policy(root: &Field<'_>) -> Option<Policy> {
    if root.is_null() {
        root.error(EMPTY_POLICY);
        return None;
    }
    let keys = root.mapping(&KEY_POLICY)?;
    let clients = keys.require("clients")?;
    // Nobody at all is a policy, too.
    let items = if clients.is_empty_list() { Vec::new() } else { clients.items() };
    Some(Policy { rules: Some(items.iter().filter_map(rule).collect()) })
}

fn rule(field: &Field<'_>) -> Option<Rule> {
    let keys = field.mapping(&CLIENT)?;
    let client = keys.require("client").and_then(|field| field.parse(Pattern::new));
    let patterns = match keys.get("keys") {
        Some(field) => list(&field).iter().filter_map(|item| item.parse(Pattern::new)).collect(),
        None => vec![Pattern::any()],
    };
    let operations = match keys.get("operations") {
        Some(field) => list(&field).iter().filter_map(|item| item.parse(word)).collect(),
        None => vec![Allowed::Sign],
    };
    let mut limits = Limits::default();
    if let Some(field) = keys.get("rate") {
        limits.rate = field.parse(count);
    }
    keys.update("in_flight", &mut limits.in_flight, most);
    Some(Rule {
        client: client?,
        keys: patterns,
        sign: operations.contains(&Allowed::Sign),
        decrypt: operations.contains(&Allowed::Decrypt),
        limits,
    })
}

/// A list, or its only item.
fn list<'a>(field: &Field<'a>) -> Vec<Field<'a>> {
    if field.is_scalar() { vec![field.clone()] } else { field.items() }
}

fn most(text: &str) -> Result<NonZeroUsize, String> {
    const MOST: usize = 1_000_000;
    match count(text)? {
        count if count.get() > MOST => Err(format!("more than {MOST} operations; write less")),
        count => Ok(count),
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Allowed {
    Sign,
    Decrypt,
}

impl Word for Allowed {
    const WHAT: &'static str = "an operation";
    const WORDS: &'static [(&'static str, Self)] = &[("sign", Self::Sign), ("decrypt", Self::Decrypt)];
}
