//! A certificate chain with its private key.

use super::{acme_order, keyless, trust_anchor};
use crate::{
    Field, Problem,
    file::{
        schema::{Key, Preset, Section},
        shown::source,
    },
    model::{AcmeOrder, CertificateSource, KeySource, Place, Source, Tls, TrustAnchor},
};
use serde_json::Value;

pub(super) const CERTIFICATE: Section<CertificateDraft, CertificateSource> = Section {
    path: "listeners[].certificates[]",
    about: "A certificate chain with its private key. The files are read again on every reload, and watched.",
    keys: &[
        Key::new(
            "chain",
            "path, or PEM text",
            Preset::Means("required without `acme`"),
            "The certificates in PEM, the server's own first. Every certificate in it is sent in every full \
                    handshake: omit the root.",
            |field, draft| draft.chain = field.placed(Field::pem),
            |certificate| if_file(certificate, || source(&certificate.chain)),
        ),
        Key::new(
            "key",
            "path, PEM text, PKCS#11 URI, or mapping",
            Preset::Means("required without `acme`"),
            "The private key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted. Prefer a path: a key in the \
                    configuration is as readable as the configuration. An ECDSA P-256 key costs a small fraction of \
                    an RSA key; give both kinds, and each client receives the one that it can verify. ML-DSA keys \
                    come before both, for clients of TLS 1.3 that can verify them. A `pkcs11:` URI (RFC 7512) names a key in a token, \
                    such as an HSM, with the attributes `module-path`, `pin-source`, `x-sessions` (16) and `x-timeout` \
                    (2s). A mapping means that the key is on another machine.",
            |field, draft| draft.key = field.placed(keyless::key),
            |certificate| if_file(certificate, || keyless::show(&certificate.key)),
        ),
        Key::new(
            "ocsp",
            "path",
            Preset::Means("no staple"),
            "An OCSP response in DER to staple (RFC 6066). The gateway does not renew the file; the response \
                    is sent in every full handshake with a client that requests it.",
            |field, draft| draft.ocsp = field.placed(Field::file_source),
            |certificate| certificate.ocsp.as_ref().map(source).into(),
        ),
        Key::new(
            "acme",
            "mapping",
            Preset::Means("none"),
            "In place of the other keys: the certificate is ordered from a certificate authority, and renewed.",
            |field, draft| {
                draft.orders = acme_order::orders(field).map(|orders| (orders, field.place()));
            },
            |certificate| acme_order::show_order(certificate.order.as_ref()),
        ),
        Key::new(
            "experimental",
            "mapping",
            Preset::Means("none"),
            "Settings that implement drafts of standards.",
            |field, draft| draft.trust_anchor = trust_anchor::experimental(field),
            trust_anchor::show,
        ),
    ],
};

/// Values read for a certificate.
#[derive(Default)]
pub(super) struct CertificateDraft {
    chain: Option<(Source, Place)>,
    key: Option<(KeySource, Place)>,
    ocsp: Option<(Source, Place)>,
    orders: Option<(Vec<AcmeOrder>, Place)>,
    trust_anchor: Option<TrustAnchor>,
}

/// Reads a certificate chain with its private key, or an order, which makes one certificate for each key type.
pub(super) fn certificates(field: &Field<'_>) -> Vec<CertificateSource> {
    if field.entry("acme").is_none() {
        return certificate(field).into_iter().collect();
    }
    let mut draft = CertificateDraft::default();
    CERTIFICATE.read(field, &mut draft);
    for key in ["chain", "key", "ocsp", "experimental"].into_iter().filter_map(|key| field.entry(key)) {
        key.error(Problem::new("`acme` provides certificate and key", "remove one of the two"));
    }
    let (orders, place) = draft.orders.unwrap_or_else(|| (Vec::new(), field.place()));
    orders.into_iter().map(|order| ordered(order, &place)).collect()
}

/// Reads a certificate chain with its private key.
pub(super) fn certificate(field: &Field<'_>) -> Option<CertificateSource> {
    let mut draft = CertificateDraft::default();
    CERTIFICATE.read(field, &mut draft)?;
    if let Some(acme) = field.entry("acme") {
        return acme
            .fail(Problem::new("only a listener's certificates can be ordered", "write `chain` and `key`"));
    }
    ["chain", "key"].iter().for_each(|key| CERTIFICATE.require(field, key));
    let ((chain, chain_place), (key, key_place)) = (draft.chain?, draft.key?);
    let (ocsp, ocsp_place) = draft.ocsp.unzip();
    Some(CertificateSource {
        chain,
        key,
        ocsp,
        poll_delay: None,
        chain_place,
        key_place,
        ocsp_place,
        order: None,
        trust_anchor: draft.trust_anchor,
    })
}

/// Makes an ordered certificate without its paths, which are known once the whole file has been read.
fn ordered(order: AcmeOrder, place: &Place) -> CertificateSource {
    let nowhere = Source::inline(Vec::new());
    CertificateSource {
        chain: nowhere.clone(),
        key: KeySource::Pem(nowhere),
        ocsp: None,
        poll_delay: None,
        chain_place: place.clone(),
        key_place: place.clone(),
        ocsp_place: None,
        order: Some(order),
        trust_anchor: None,
    }
}

/// Returns null for an ordered certificate, whose files are not part of the configuration.
fn if_file(certificate: &CertificateSource, shown: impl FnOnce() -> Value) -> Value {
    if certificate.order.is_some() { Value::Null } else { shown() }
}

/// Shows the certificates of a listener, if it has TLS.
pub(super) fn show_all(tls: Option<&Tls>) -> Value {
    let shown = |tls: &Tls| tls.certificates.iter().map(|one| CERTIFICATE.show(one)).collect::<Value>();
    tls.map(shown).into()
}
