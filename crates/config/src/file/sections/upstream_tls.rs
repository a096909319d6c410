//! TLS to upstream servers.

use super::{
    certificate::{CERTIFICATE, certificate},
    tls_parameters::{cipher_suites, groups, refuse_nothing_left},
};
use crate::{
    Field, Problem,
    enums::{name, switch, word},
    file::{
        schema::{Key, Preset, Section},
        shown::{list, source},
    },
    model::{CertificateSource, KeySource, TlsParameters, UpstreamTls},
    values,
};
use std::sync::Arc;

pub(super) const UPSTREAM_TLS: Section<UpstreamTls> = Section {
    path: "upstreams.<name>.tls",
    about: "TLS to the servers. `on` verifies their certificates against the system's CA bundle.",
    keys: &[
        Key::new(
            "server_name",
            "host",
            Preset::Means("the host of the server's address, `localhost` for a Unix socket"),
            "The name sent as SNI; the server's certificate must be valid for it.",
            |field, tls| tls.server_name = field.parse(values::host),
            |tls| tls.server_name.as_deref().into(),
        ),
        Key::new(
            "ca",
            "path, or PEM text",
            Preset::Means("the system's CA bundle"),
            "The CA certificates in PEM that the servers' certificates must chain to.",
            |field, tls| (tls.ca, tls.ca_place) = (field.pem(), Some(field.place())),
            |tls| tls.ca.as_ref().map(source).into(),
        ),
        Key::new(
            "certificate",
            "mapping with `chain` and `key`",
            Preset::Means("none"),
            "The certificate presented to servers that request one: PEM, as in \
                    [`listeners[].certificates[]`](#listenerscertificates), with its key on this machine. The key is \
                    used on the event loop, in full handshakes; connections that resume a session do not need it.",
            |field, tls| tls.certificate = client_certificate(field).map(Arc::new),
            |tls| tls.certificate.as_ref().map(|certificate| CERTIFICATE.show(certificate)).into(),
        ),
        Key::new(
            "min",
            "`1.0`, `1.1`, `1.2` or `1.3`",
            Preset::Is("1.2"),
            "The lowest TLS version used with the servers.",
            |field, tls| field.set(&mut tls.parameters.min, word),
            |tls| name(tls.parameters.min).into(),
        ),
        Key::new(
            "max",
            "`1.0`, `1.1`, `1.2` or `1.3`",
            Preset::Is("1.3"),
            "The highest TLS version used with the servers.",
            |field, tls| field.set(&mut tls.parameters.max, word),
            |tls| name(tls.parameters.max).into(),
        ),
        Key::new(
            "groups",
            "list of groups",
            Preset::Is("[X25519MLKEM768, X25519, P-256, P-384, P-521]"),
            "Key-exchange groups that are offered, most preferred first. Key shares of the first and, after \
                    `X25519MLKEM768`, of the next are sent at once. In TLS 1.2, the certificate of a server with \
                    an ECDSA key must have one of these curves.",
            |field, tls| tls.parameters.groups = groups(field, tls.parameters.max),
            |tls| tls.parameters.groups.iter().map(|group| name(*group)).collect(),
        ),
        Key::new(
            "cipher_suites",
            "list of suites",
            Preset::Means("those that BoringSSL offers, except 3DES"),
            "Suites of TLS 1.2 and below that are offered, as in \
                    [`listeners[].tls`](#listenerstls). Those of TLS 1.3 are always offered.",
            |field, tls| tls.parameters.ciphers = cipher_suites(field),
            |tls| list(tls.parameters.ciphers.iter().map(|suite| suite.as_str().into())),
        ),
        Key::new(
            "verify",
            "`on` or `off`",
            Preset::Is("on"),
            "Check the servers' certificates. With `off`, any party on the network path can \
                    impersonate them.",
            |field, tls| field.set(&mut tls.verify, switch),
            |tls| tls.verify.into(),
        ),
    ],
};

fn client_certificate(field: &Field<'_>) -> Option<CertificateSource> {
    let read = certificate(field)?;
    if read.trust_anchor.is_some() {
        let problem =
            Problem::new("client certificates have no trust anchor identifier", "remove `experimental`");
        return field.at("experimental").fail(problem);
    }
    match (&read.key, &read.ocsp) {
        (KeySource::Pem(_), None) => Some(read),
        (KeySource::Keyless(_) | KeySource::Pkcs11(_), _) => field
            .at("key")
            .fail(Problem::new("the key of a client certificate must be in a file", "write a path")),
        (_, Some(_)) => {
            field.at("ocsp").fail(Problem::new("client certificates have no OCSP staple", "remove `ocsp`"))
        }
    }
}

/// Reads the TLS settings; `None` if TLS is off.
pub(super) fn tls(field: &Field<'_>) -> Option<UpstreamTls> {
    if field.is_scalar() {
        return field.parse(switch)?.then(UpstreamTls::default);
    }
    let mut tls = UpstreamTls::default();
    UPSTREAM_TLS.read(field, &mut tls)?;
    let TlsParameters { min, max, ciphers, .. } = &tls.parameters;
    refuse_nothing_left(field, [*min, *max], ciphers);
    if let (false, Some(ca)) = (tls.verify, field.entry("ca")) {
        ca.error(Problem::new("`verify: off` means that no CA is used", "remove one of them"));
    }
    Some(tls)
}
