//! TLS settings of a listener.

use super::{
    client_auth,
    tls_parameters::{cipher_suites, groups, refuse_nothing_left},
};
use crate::{
    Field, Problem,
    enums::{name, switch, word},
    file::{
        schema::{Key, Preset, Section},
        shown::list,
    },
    model::{Mode, TlsPolicy, Version},
    values::alpn,
};
use serde_json::Value;

pub(super) const TLS: Section<TlsDraft, TlsPolicy> = Section {
    path: "listeners[].tls",
    about: "TLS parameters that are offered in the handshake.",
    keys: &[
        Key {
            name: "min",
            value: "`1.0`, `1.1`, `1.2` or `1.3`",
            preset: Preset::Is("1.2"),
            about: "The lowest TLS version. 1.0 and 1.1 are deprecated (RFC 8996): use them only for clients that \
                    support nothing newer. 1.3 excludes old clients, and saves all others a round trip.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.min, word),
            show: |policy| name(policy.min).into(),
        },
        Key {
            name: "max",
            value: "`1.0`, `1.1`, `1.2` or `1.3`",
            preset: Preset::Is("1.3"),
            about: "The highest TLS version.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.max, word),
            show: |policy| name(policy.max).into(),
        },
        Key {
            name: "groups",
            value: "list of groups",
            preset: Preset::Is("[X25519MLKEM768, X25519, P-256, P-384]"),
            about: "Key-exchange groups, most preferred first; `P-521` exists too. `X25519MLKEM768` is post-quantum, \
                    works in TLS 1.3 only, and adds about 2 KiB to the handshake.",
            needs_restart: false,
            read: |field, draft| draft.policy.groups = groups(field, draft.policy.max),
            show: |policy| policy.groups.iter().map(|group| name(*group)).collect(),
        },
        Key {
            name: "cipher_suites",
            value: "list of suites",
            preset: Preset::Means(
                "AEADs with ECDHE, in the client's order, and those that `cbc` and `static_rsa` add",
            ),
            about: "Suites of TLS 1.2 and below, most preferred first, by OpenSSL's names \
                    (`ECDHE-ECDSA-AES128-GCM-SHA256`) or IANA's (`TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`), in \
                    place of all others. Include suites for every kind of certificate: clients of an RSA certificate \
                    need `ECDHE-RSA-...`. TLS 1.3 has three suites, which are always offered.",
            needs_restart: false,
            read: |field, draft| draft.policy.ciphers = cipher_suites(field),
            show: |policy| list(policy.ciphers.iter().map(|suite| suite.as_str().into())),
        },
        Key {
            name: "alpn",
            value: "list of protocols",
            preset: Preset::Means("`[h2, http/1.1]`; in `tcp` mode none"),
            about: "ALPN protocols, most preferred first. In `http` mode `h2` and `http/1.1` can be listed; in `tcp` \
                    mode list the protocols of the upstream.",
            needs_restart: false,
            read: |field, draft| draft.policy.alpn = protocols(field, draft.mode),
            show: |policy| policy.alpn.clone().into(),
        },
        Key {
            name: "cbc",
            value: "`on` or `off`",
            preset: Preset::Means("`off`; with a `min` below `1.2` always `on`"),
            about: "Offer cipher suites of TLS 1.2 and below that encrypt by CBC and authenticate by SHA-1, last. New \
                    attacks on them are still found (Lucky 13, GOLDENDOODLE), and scanners report them. Only for \
                    clients that support nothing else. TLS 1.0 and 1.1 have no others.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.cbc, switch),
            show: |policy| policy.cbc.into(),
        },
        Key {
            name: "static_rsa",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Offer RSA key exchange in TLS 1.2 and below, last. It has no forward secrecy: a later holder of \
                    the key can decrypt recorded traffic. Only for clients that support nothing else.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.static_rsa, switch),
            show: |policy| policy.static_rsa.into(),
        },
        Key {
            name: "allow_weak_keys",
            value: "`on` or `off`",
            preset: Preset::Is("off"),
            about: "Accept certificates with RSA keys below 2048 bits. Such keys can be broken; browsers refuse them.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.allow_weak_keys, switch),
            show: |policy| policy.allow_weak_keys.into(),
        },
        Key {
            name: "ocsp_stapling",
            value: "`on`, `off` or `must_staple`",
            preset: Preset::Is("must_staple"),
            about: "The certificates for which the gateway fetches a response from their authority's OCSP responder (RFC 6960), and staples it in full handshakes with clients that request it: all that name a responder, \
                    none, or those that clients refuse without a staple (RFC 7633). The responder is queried over \
                    `http://`, and the chain must contain the issuer's certificate. A certificate with `ocsp` uses \
                    that file instead.",
            needs_restart: false,
            read: |field, draft| field.set(&mut draft.policy.ocsp_stapling, word),
            show: |policy| name(policy.ocsp_stapling).into(),
        },
        Key {
            name: "client_auth",
            value: "mapping, or `off`",
            preset: Preset::Is("off"),
            about: "Whether clients must, may or need not present certificates.",
            needs_restart: false,
            read: |field, draft| draft.policy.client_auth = client_auth::client_auth(field),
            show: |policy| client_auth::show(&policy.client_auth),
        },
    ],
};

/// Values read for the TLS policy of a listener in this mode.
pub(super) struct TlsDraft {
    mode: Mode,
    policy: TlsPolicy,
}

/// Reads the TLS policy of a listener in this mode.
pub(super) fn tls(field: &Field<'_>, mode: Mode) -> TlsPolicy {
    let mut draft = TlsDraft { mode, policy: TlsPolicy::new(mode) };
    if TLS.read(field, &mut draft).is_some() {
        let policy = &draft.policy;
        refuse_nothing_left(field, [policy.min, policy.max], &policy.ciphers);
        refuse_second_choice(field, &draft.policy);
        refuse_static_rsa(field, &draft.policy);
        refuse_cbc(field, &draft.policy);
    }
    draft.policy
}

pub(super) fn show(policy: &TlsPolicy) -> Value {
    TLS.show(policy)
}

/// Refuses the switches for old suites beside a list, where they would have no effect.
fn refuse_second_choice(field: &Field<'_>, policy: &TlsPolicy) {
    for (key, on) in [("cbc", policy.cbc), ("static_rsa", policy.static_rsa)] {
        if on && !policy.ciphers.is_empty() {
            field.at(key).error(Problem::new(
                "`cipher_suites` already selects the suites",
                "add the old ones there, and remove this",
            ));
        }
    }
}

fn refuse_static_rsa(field: &Field<'_>, policy: &TlsPolicy) {
    if policy.static_rsa && policy.min == Version::Tls13 {
        field
            .at("static_rsa")
            .error(Problem::new("TLS 1.3 has no RSA key exchange", "set `min: 1.2`, or remove this"));
    }
}

fn refuse_cbc(field: &Field<'_>, policy: &TlsPolicy) {
    if policy.cbc && policy.min == Version::Tls13 {
        field
            .at("cbc")
            .error(Problem::new("TLS 1.3 has no CBC cipher suites", "set `min: 1.2`, or remove this"));
    }
}

fn protocols(field: &Field<'_>, mode: Mode) -> Vec<String> {
    let mut protocols: Vec<String> = Vec::new();
    if field.is_empty_list() {
        return protocols;
    }
    for item in field.items() {
        let Some(protocol) = item.parse(alpn) else { continue };
        if mode == Mode::Http && !["h2", "http/1.1"].contains(&protocol.as_str()) {
            item.error(Problem::new(
                "an http listener supports `h2` and `http/1.1`",
                "use one of them, or `mode: tcp`",
            ));
        }
        if protocols.contains(&protocol) {
            item.error(Problem::new("this protocol is listed twice", "remove one"));
        }
        protocols.push(protocol);
    }
    protocols
}
