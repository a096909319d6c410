//! Mistakes in the TLS of listeners, with the exact messages that the user sees.

use super::{Case, check, listener};

#[test]
fn tls() {
    check(TLS, |text| listener(&format!("respond: hi, tls: {{{text}}}")));
}

const TLS: &[Case] = &[
    ("min: 1.4", "q.yaml:1: listeners[0].tls.min: `1.4` is not a TLS version; use 1.0, 1.1, 1.2 or 1.3"),
    (
        "max: TLSv1.4",
        "q.yaml:1: listeners[0].tls.max: `TLSv1.4` is not a TLS version; use 1.0, 1.1, 1.2 or 1.3",
    ),
    (
        "min: 1.3, max: 1.2",
        "q.yaml:1: listeners[0].tls.max: `min` 1.3 is above `max` 1.2; lower `min` or raise `max`",
    ),
    ("max: 1.1", "q.yaml:1: listeners[0].tls.max: `min` 1.2 is above `max` 1.1; lower `min` or raise `max`"),
    (
        "min: 1.3, static_rsa: on",
        "q.yaml:1: listeners[0].tls.static_rsa: TLS 1.3 has no RSA key exchange; set `min: 1.2`, or remove this",
    ),
    (
        "min: 1.3, cbc: on",
        "q.yaml:1: listeners[0].tls.cbc: TLS 1.3 has no CBC cipher suites; set `min: 1.2`, or remove this",
    ),
    (
        "ocsp_stapling: must-staple",
        "q.yaml:1: listeners[0].tls.ocsp_stapling: `must-staple` is not a mode of OCSP stapling; did you mean `must_staple`?",
    ),
    ("static_rsa: maybe", "q.yaml:1: listeners[0].tls.static_rsa: `maybe` is not a switch; use on or off"),
    ("groups: []", "q.yaml:1: listeners[0].tls.groups: the list is empty; give it at least one item"),
    (
        "groups: [X448]",
        "q.yaml:1: listeners[0].tls.groups[0]: `X448` is not a key-exchange group; use X25519MLKEM768, X25519, P-256, P-384 or P-521",
    ),
    (
        "groups: [X25519MLKEM1024]",
        "q.yaml:1: listeners[0].tls.groups[0]: `X25519MLKEM1024` is not a key-exchange group; did you mean `X25519MLKEM768`?",
    ),
    (
        "groups: [X25519, x25519]",
        "q.yaml:1: listeners[0].tls.groups[1]: `X25519` is listed twice; remove one",
    ),
    (
        "groups: [X25519MLKEM768], max: 1.2",
        "q.yaml:1: listeners[0].tls.groups: X25519MLKEM768 needs TLS 1.3, but `max` is lower; add `X25519`",
    ),
    (
        "alpn: [h3]",
        "q.yaml:1: listeners[0].tls.alpn[0]: an http listener supports `h2` and `http/1.1`; use one of them, or `mode: tcp`",
    ),
    ("alpn: [h2, h2]", "q.yaml:1: listeners[0].tls.alpn[1]: this protocol is listed twice; remove one"),
    ("alpn: ['']", "q.yaml:1: listeners[0].tls.alpn[0]: an ALPN protocol has 1 to 255 bytes"),
    (
        "client_auth: required",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify client certificates; write `client_auth: {mode: required, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {mode: required}",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify client certificates; write `client_auth: {mode: required, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {mode: optional}",
        "q.yaml:1: listeners[0].tls.client_auth: no CA to verify client certificates; write `client_auth: {mode: optional, ca: clients-ca.pem}`",
    ),
    (
        "client_auth: {ca: x}",
        "q.yaml:1: listeners[0].tls.client_auth: `mode` is missing; add `mode: ...` (`off`, `optional` or `required`)",
    ),
    (
        "client_auth: {mode: sometimes, ca: x}",
        "q.yaml:1: listeners[0].tls.client_auth.mode: `sometimes` is not a mode of client authentication; use off, optional or required",
    ),
    (
        "cipher_suites: [TLS_AES_128_GCM_SHA256]",
        "q.yaml:1: listeners[0].tls.cipher_suites[0]: `TLS_AES_128_GCM_SHA256` belongs to TLS 1.3, whose three suites are always offered; remove it, and list suites of TLS 1.2 and below",
    ),
    (
        "cipher_suites: [ECDHE-RSA-AES128-GCM-SHA265]",
        "q.yaml:1: listeners[0].tls.cipher_suites[0]: `ECDHE-RSA-AES128-GCM-SHA265` is not a known cipher suite; did you mean `ECDHE-RSA-AES128-GCM-SHA256`?",
    ),
    (
        "cipher_suites: [AES128-SHA, TLS_RSA_WITH_AES_128_CBC_SHA]",
        "q.yaml:1: listeners[0].tls.cipher_suites[1]: `AES128-SHA` is listed twice; remove one",
    ),
    (
        "cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256], cbc: on",
        "q.yaml:1: listeners[0].tls.cbc: `cipher_suites` already selects the suites; add the old ones there, and remove this",
    ),
    (
        "min: 1.3, cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256]",
        "q.yaml:1: listeners[0].tls.cipher_suites: only TLS 1.3 is offered, and its three suites are fixed; remove this, or lower `min`",
    ),
    (
        "min: 1.0, cipher_suites: [ECDHE-RSA-AES128-GCM-SHA256]",
        "q.yaml:1: listeners[0].tls.cipher_suites: TLS 1.0 has none of these suites; add one that ends in `-SHA`, or raise `min` to `1.2`",
    ),
];
