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
        Key::new(
            "min",
            "`1.0`, `1.1`, `1.2` or `1.3`",
            Preset::Is("1.2"),
            "The lowest TLS version. 1.0 and 1.1 are deprecated (RFC 8996): use them only for clients that \
                    support nothing newer. 1.3 excludes old clients, and saves all others a round trip.",
            |field, draft| field.set(&mut draft.policy.min, word),
            |policy| name(policy.min).into(),
        ),
        Key::new(
            "max",
            "`1.0`, `1.1`, `1.2` or `1.3`",
            Preset::Is("1.3"),
            "The highest TLS version.",
            |field, draft| field.set(&mut draft.policy.max, word),
            |policy| name(policy.max).into(),
        ),
        Key::new(
            "groups",
            "list of groups",
            Preset::Is("[X25519MLKEM768, X25519, P-256, P-384]"),
            "Key-exchange groups, most preferred first; `P-521` exists too. `X25519MLKEM768` is post-quantum, \
                    works in TLS 1.3 only, and adds about 2 KiB to the handshake.",
            |field, draft| draft.policy.groups = groups(field, draft.policy.max),
            |policy| policy.groups.iter().map(|group| name(*group)).collect(),
        ),
        Key::new(
            "cipher_suites",
            "list of suites",
            Preset::Means(
                "AEADs with ECDHE, in the client's order, and those that `cbc` and `static_rsa` add",
            ),
            "Suites of TLS 1.2 and below, most preferred first, by OpenSSL's names \
                    (`ECDHE-ECDSA-AES128-GCM-SHA256`) or IANA's (`TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256`), in \
                    place of all others. Include suites for every kind of certificate: clients of an RSA certificate \
                    need `ECDHE-RSA-...`. TLS 1.3 has three suites, which are always offered.",
            |field, draft| draft.policy.ciphers = cipher_suites(field),
            |policy| list(policy.ciphers.iter().map(|suite| suite.as_str().into())),
        ),
        Key::new(
            "alpn",
            "list of protocols",
            Preset::Means("`[h2, http/1.1]`; in `tcp` mode none"),
            "ALPN protocols, most preferred first. In `http` mode `h2` and `http/1.1` can be listed; in `tcp` \
                    mode list the protocols of the upstream.",
            |field, draft| draft.policy.alpn = protocols(field, draft.mode),
            |policy| policy.alpn.clone().into(),
        ),
        Key::new(
            "cbc",
            "`on` or `off`",
            Preset::Means("`off`; with a `min` below `1.2` always `on`"),
            "Offer cipher suites of TLS 1.2 and below that encrypt by CBC and authenticate by SHA-1, last. New \
                    attacks on them are still found (Lucky 13, GOLDENDOODLE), and scanners report them. Only for \
                    clients that support nothing else. TLS 1.0 and 1.1 have no others.",
            |field, draft| field.set(&mut draft.policy.cbc, switch),
            |policy| policy.cbc.into(),
        ),
        Key::new(
            "static_rsa",
            "`on` or `off`",
            Preset::Is("off"),
            "Offer RSA key exchange in TLS 1.2 and below, last. It has no forward secrecy: a later holder of \
                    the key can decrypt recorded traffic. Only for clients that support nothing else.",
            |field, draft| field.set(&mut draft.policy.static_rsa, switch),
            |policy| policy.static_rsa.into(),
        ),
        Key::new(
            "allow_weak_keys",
            "`on` or `off`",
            Preset::Is("off"),
            "Accept certificates with RSA keys below 2048 bits. Such keys can be broken; browsers refuse them.",
            |field, draft| field.set(&mut draft.policy.allow_weak_keys, switch),
            |policy| policy.allow_weak_keys.into(),
        ),
        Key::new(
            "ocsp_stapling",
            "`on`, `off` or `must_staple`",
            Preset::Is("must_staple"),
            "The certificates for which the gateway fetches a response from their authority's OCSP responder (RFC 6960), and staples it in full handshakes with clients that request it: all that name a responder, \
                    none, or those that clients refuse without a staple (RFC 7633). The responder is queried over \
                    `http://`, and the chain must contain the issuer's certificate. A certificate with `ocsp` uses \
                    that file instead.",
            |field, draft| field.set(&mut draft.policy.ocsp_stapling, word),
            |policy| name(policy.ocsp_stapling).into(),
        ),
        Key::new(
            "certificate_compression",
            "`on` or `off`",
            Preset::Is("on"),
            "Compress the certificate chain in full TLS 1.3 handshakes, over TCP and QUIC, by zstd, Brotli or zlib, the \
                    first of these that the client supports (RFC 8879). Each chain is compressed once and kept. A \
                    chain that hardly becomes shorter is sent uncompressed.",
            |field, draft| field.set(&mut draft.policy.certificate_compression, switch),
            |policy| policy.certificate_compression.into(),
        ),
        Key::new(
            "client_auth",
            "mapping, or `off`",
            Preset::Is("off"),
            "Whether clients must, may or need not present certificates.",
            |field, draft| draft.policy.client_auth = client_auth::client_auth(field),
            |policy| client_auth::show(&policy.client_auth),
        ),
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
