//! A certificate chain with its private key.

use super::keyless;
use crate::{
    Field,
    file::schema::{Key, Preset, Section},
    model::{CertificateSource, Source},
};

pub(super) const CERTIFICATE: Section = Section {
    path: "listeners[].certificates[]",
    about: "A certificate chain with its private key. The files are read again on every reload, and watched.",
    keys: &[
        Key {
            name: "chain",
            value: "path, or PEM text",
            preset: Preset::Required,
            about: "The certificates in PEM, the server's own first. Every certificate in it is sent in every full \
                    handshake: leave the root out.",
        },
        Key {
            name: "key",
            value: "path, PEM text, or mapping",
            preset: Preset::Required,
            about: "The private key in PEM (PKCS#8, PKCS#1 or SEC1), not encrypted. Prefer a path: a key in the \
                    configuration is as readable as the configuration. An ECDSA P-256 key costs a small part of what an \
                    RSA key costs; give both kinds, and each client gets the one it can verify. A mapping says that \
                    the key is on another machine.",
        },
        Key {
            name: "ocsp",
            value: "path",
            preset: Preset::Means("no staple"),
            about: "An OCSP response in DER to staple (RFC 6066). Renewing the file is up to you; it is sent in every \
                    full handshake with a client that asks.",
        },
    ],
};

/// A certificate chain with its private key.
pub(super) fn certificate(field: &Field<'_>) -> Option<CertificateSource> {
    let keys = field.mapping(&CERTIFICATE)?;
    let (chain, key, ocsp) = (keys.require("chain"), keys.require("key"), keys.get("ocsp"));
    let chain_source = chain.as_ref().and_then(Field::pem);
    let key_source = key.as_ref().and_then(keyless::key);
    let ocsp_source = ocsp.as_ref().and_then(Field::file).map(Source::File);
    Some(CertificateSource {
        chain: chain_source?,
        key: key_source?,
        ocsp: ocsp_source,
        chain_place: chain?.place(),
        key_place: key?.place(),
        ocsp_place: ocsp.as_ref().map(Field::place),
    })
}
