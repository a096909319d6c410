//! A certificate chain with its private key.

use super::keyless;
use crate::{
    Field,
    file::{
        schema::{Key, Preset, Section},
        shown::source,
    },
    model::{CertificateSource, KeySource, Place, Source},
};

pub(super) const CERTIFICATE: Section<CertificateDraft, CertificateSource> = Section {
    path: "listeners[].certificates[]",
    about: "A certificate chain with its private key. The files are read again on every reload, and watched.",
    keys: &[
        Key {
            name: "chain",
            value: "path, or PEM text",
            preset: Preset::Required,
            about: "The certificates in PEM, the server's own first. Every certificate in it is sent in every full \
                    handshake: leave the root out.",
            needs_restart: false,
            read: |field, draft| draft.chain = field.placed(Field::pem),
            show: |certificate| source(&certificate.chain),
        },
        Key {
            name: "key",
            value: "path, PEM text, or mapping",
            preset: Preset::Required,
            about: "The private key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted. Prefer a path: a key in the \
                    configuration is as readable as the configuration. An ECDSA P-256 key costs a small part of what an \
                    RSA key costs; give both kinds, and each client gets the one it can verify. A mapping says that \
                    the key is on another machine.",
            needs_restart: false,
            read: |field, draft| draft.key = field.placed(keyless::key),
            show: |certificate| keyless::show(&certificate.key),
        },
        Key {
            name: "ocsp",
            value: "path",
            preset: Preset::Means("no staple"),
            about: "An OCSP response in DER to staple (RFC 6066). Renewing the file is up to you; it is sent in every \
                    full handshake with a client that asks.",
            needs_restart: false,
            read: |field, draft| draft.ocsp = field.placed(Field::file_source),
            show: |certificate| certificate.ocsp.as_ref().map(source).into(),
        },
    ],
};

/// What has been read of a certificate.
#[derive(Default)]
pub(super) struct CertificateDraft {
    chain: Option<(Source, Place)>,
    key: Option<(KeySource, Place)>,
    ocsp: Option<(Source, Place)>,
}

/// A certificate chain with its private key.
pub(super) fn certificate(field: &Field<'_>) -> Option<CertificateSource> {
    let mut draft = CertificateDraft::default();
    CERTIFICATE.read(field, &mut draft)?;
    let ((chain, chain_place), (key, key_place)) = (draft.chain?, draft.key?);
    let (ocsp, ocsp_place) = draft.ocsp.unzip();
    Some(CertificateSource { chain, key, ocsp, poll_delay: None, chain_place, key_place, ocsp_place })
}
