//! Protocol versions, groups and client certificates of a listener.

use crate::{
    Field,
    file::{
        mapping::Mapping,
        schema::{Key, Preset, Section},
    },
    model::{ClientAuth, ClientCheck, Group, Mode, TlsPolicy, Version},
    values::alpn,
    words::{Word, name, switch, word},
};

pub(super) const TLS: Section = Section {
    path: "listeners[].tls",
    about: "What is offered in the TLS handshake.",
    keys: &[
        Key {
            name: "min",
            value: "`1.0`, `1.1`, `1.2` or `1.3`",
            preset: Preset::Is("1.2"),
            about: "The lowest TLS version. 1.0 and 1.1 are deprecated (RFC 8996): choose them only for clients that \
                    cannot do better. 1.3 shuts out old clients, and saves the others a round trip.",
        },
        Key {
            name: "max",
            value: "`1.0`, `1.1`, `1.2` or `1.3`",
            preset: Preset::Is("1.3"),
            about: "The highest TLS version.",
        },
        Key {
            name: "groups",
            value: "list of groups",
            preset: Preset::Is("[X25519MLKEM768, X25519, P-256, P-384]"),
            about: "Key-exchange groups, most preferred first; `P-521` exists too. `X25519MLKEM768` is post-quantum, \
                    works in TLS 1.3 only, and adds about 2 KiB to the handshake.",
        },
        Key {
            name: "alpn",
            value: "list of protocols",
            preset: Preset::Means("`[h2, http/1.1]`; in `tcp` mode none"),
            about: "ALPN protocols, most preferred first. In `http` mode `h2` and `http/1.1` can be listed; in `tcp` mode \
                    list what the upstream speaks.",
        },
        Key {
            name: "static_rsa",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Offer RSA key exchange in TLS 1.2 and below, last. It has no forward secrecy: whoever gets the key \
                    later can read what was recorded. Only for clients that have nothing else.",
        },
        Key {
            name: "allow_weak_keys",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Accept certificates with RSA keys below 2048 bits. Such keys can be broken; browsers refuse them.",
        },
        Key {
            name: "client_auth",
            value: "mapping, or `off`",
            preset: Preset::Is("off"),
            about: "Whether clients present certificates.",
        },
    ],
};

pub(super) const CLIENT_AUTH: Section = Section {
    path: "listeners[].tls.client_auth",
    about: "Whether clients present certificates. Verifying one costs CPU in every full handshake, beside the \
            gateway's own private-key operation.",
    keys: &[
        Key {
            name: "mode",
            value: "`off`, `optional` or `required`",
            preset: Preset::Required,
            about: "`optional` asks, and a certificate that is sent must verify; with `required` a handshake without a \
                    valid one fails.",
        },
        Key {
            name: "ca",
            value: "path, or PEM text",
            preset: Preset::Means("none"),
            about: "The CA certificates in PEM that clients' certificates must lead to. Needed unless `mode` is `off`.",
        },
    ],
};

/// The policy of a listener in this mode.
pub(super) fn tls(field: &Field<'_>, mode: Mode) -> TlsPolicy {
    let mut policy = TlsPolicy::new(mode);
    let Some(keys) = field.mapping(&TLS) else { return policy };
    keys.update("min", &mut policy.min, word);
    keys.update("max", &mut policy.max, word);
    refuse_no_version(&keys, &policy);
    if let Some(field) = keys.get("groups") {
        policy.groups = groups(&field, policy.max);
    }
    if let Some(field) = keys.get("alpn") {
        policy.alpn = protocols(&field, mode);
    }
    keys.update("static_rsa", &mut policy.static_rsa, switch);
    if policy.static_rsa && policy.min == Version::Tls13 {
        let field = keys.field().at("static_rsa");
        field.error("TLS 1.3 has no RSA key exchange; set `min: 1.2`, or remove this");
    }
    keys.update("allow_weak_keys", &mut policy.allow_weak_keys, switch);
    if let Some(field) = keys.get("client_auth") {
        policy.client_auth = client_auth(&field);
    }
    policy
}

fn refuse_no_version(keys: &Mapping<'_>, policy: &TlsPolicy) {
    if policy.min <= policy.max {
        return;
    }
    let (min, max) = (name(policy.min), name(policy.max));
    let key = if keys.get("max").is_some() { "max" } else { "min" };
    keys.field()
        .at(key)
        .error(format!("no version is left from min {min} to max {max}; lower `min` or raise `max`"));
}

fn groups(field: &Field<'_>, max: Version) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let items = field.items();
    for item in &items {
        match item.parse(word) {
            Some(group) if groups.contains(&group) => {
                item.error(format!("`{}` is listed twice; remove one", name(group)));
            }
            Some(group) => groups.push(group),
            None => {}
        }
    }
    if groups == [Group::X25519MlKem768] && items.len() == 1 && max < Version::Tls13 {
        field.error("X25519MLKEM768 needs TLS 1.3, and max is below; add `X25519`");
    }
    groups
}

fn protocols(field: &Field<'_>, mode: Mode) -> Vec<String> {
    let mut protocols: Vec<String> = Vec::new();
    if field.is_empty_list() {
        return protocols;
    }
    for item in field.items() {
        let Some(protocol) = item.parse(alpn) else { continue };
        if mode == Mode::Http && !["h2", "http/1.1"].contains(&protocol.as_str()) {
            item.error("an http listener speaks `h2` and `http/1.1`; use one of them, or `mode: tcp`");
        }
        if protocols.contains(&protocol) {
            item.error("this protocol is listed twice; remove one");
        }
        protocols.push(protocol);
    }
    protocols
}

fn client_auth(field: &Field<'_>) -> ClientAuth {
    if field.is_scalar() {
        return short_client_auth(field);
    }
    let Some(keys) = field.mapping(&CLIENT_AUTH) else { return ClientAuth::Off };
    let mode = keys.require("mode").and_then(|field| field.parse(word));
    let ca = keys.get("ca");
    let bundle = ca.as_ref().and_then(Field::pem);
    match (mode, ca, bundle) {
        (Some(Asked::Optional), Some(ca), Some(bundle)) => {
            ClientAuth::Optional(ClientCheck::ca(bundle, ca.place()))
        }
        (Some(Asked::Required), Some(ca), Some(bundle)) => {
            ClientAuth::Required(ClientCheck::ca(bundle, ca.place()))
        }
        (Some(asked @ (Asked::Optional | Asked::Required)), None, _) => {
            field.error(without_ca(asked));
            ClientAuth::Off
        }
        _ => ClientAuth::Off,
    }
}

/// The short form can only be `off`: anything else needs to know a CA.
fn short_client_auth(field: &Field<'_>) -> ClientAuth {
    if let Some(asked @ (Asked::Optional | Asked::Required)) = field.parse(word) {
        field.error(without_ca(asked));
    }
    ClientAuth::Off
}

fn without_ca(asked: Asked) -> String {
    let mode = name(asked);
    format!("no CA to verify clients with; write `client_auth: {{mode: {mode}, ca: clients-ca.pem}}`")
}

/// What is asked of clients.
#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Off,
    Optional,
    Required,
}

impl Word for Asked {
    const WHAT: &'static str = "a mode of client authentication";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("off", Self::Off),
        ("optional", Self::Optional),
        ("required", Self::Required),
        ("false", Self::Off),
        ("no", Self::Off),
    ];
}
