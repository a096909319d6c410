//! TLS of a chain.

use super::{
    route::text_match,
    values::{put, source, time},
};
use crate::{
    model::{AltName, AltNameKind, CertificateSource, ClientAuth, ClientCheck, KeySource, TlsPolicy},
    words::name,
};
use serde_json::{Value, json};

pub(super) fn certificate(certificate: &CertificateSource) -> Value {
    let mut shown = json!({
        "chain": source(&certificate.chain),
        "key": key(&certificate.key),
    });
    put(&mut shown, "ocsp", certificate.ocsp.as_ref().map(source));
    shown
}

fn key(key: &KeySource) -> Value {
    let keyless = match key {
        KeySource::Pem(pem) => return source(pem),
        KeySource::Keyless(keyless) => keyless,
    };
    let mut shown = json!({
        "servers": keyless.servers.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "protocol": name(keyless.protocol),
        "padding": keyless.padding,
        "timeout": time(keyless.timeout),
        "hedge": keyless.hedge,
    });
    let tls = keyless.tls.as_ref();
    put(&mut shown, "ca", tls.map(|tls| source(&tls.ca.0)));
    put(&mut shown, "certificate", tls.map(|tls| source(&tls.certificate.0)));
    put(&mut shown, "key", tls.map(|tls| source(&tls.key.0)));
    put(&mut shown, "fallback", keyless.fallback.as_ref().map(source));
    json!({ "keyless": shown })
}

pub(super) fn tls(policy: &TlsPolicy) -> Value {
    let mut shown = json!({
        "min": name(policy.min),
        "max": name(policy.max),
        "groups": policy.groups.iter().map(|group| name(*group)).collect::<Vec<_>>(),
        "alpn": policy.alpn,
        "static_rsa": policy.static_rsa,
        "allow_weak_keys": policy.allow_weak_keys,
        "client_auth": match &policy.client_auth {
            ClientAuth::Off => json!("off"),
            ClientAuth::Optional(check) => client_check("optional", check),
            ClientAuth::Required(check) => client_check("required", check),
        },
    });
    if !policy.ciphers.is_empty() {
        put(&mut shown, "ciphers", Some(policy.ciphers.clone().into()));
    }
    shown
}

fn client_check(mode: &str, check: &ClientCheck) -> Value {
    let mut shown = json!({ "mode": mode });
    put(&mut shown, "ca", check.ca.as_ref().map(|(ca, _)| source(ca)));
    put(&mut shown, "revoked", check.revoked.as_ref().map(|(list, _)| source(list)));
    for (key, pins) in [("certificates", &check.certificates), ("public_keys", &check.public_keys)] {
        let pins: Vec<Value> = pins.iter().map(|pin| hex(pin).into()).collect();
        put(&mut shown, key, (!pins.is_empty()).then_some(pins.into()));
    }
    let names: Vec<Value> = check.names.iter().map(alt_name).collect();
    put(&mut shown, "names", (!names.is_empty()).then_some(names.into()));
    shown
}

fn alt_name(name: &AltName) -> Value {
    let kind = match name.kind {
        AltNameKind::Dns => "dns",
        AltNameKind::Uri => "uri",
        AltNameKind::Email => "email",
        AltNameKind::Ip => "ip",
    };
    json!({ kind: text_match(&name.text) })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
