//! Kinds of keys that the provider does not compute with.

use boring::pkey::PKey;
use quadrille_engine::{Key, KeyType, PublicKey};
use std::{fs, path::Path};

/// Rejects ML-DSA in a PEM file with a private key, a certificate or a public key. Other problems are left to the
/// provider, which reads the file later.
pub(super) fn check(file: &Path) -> Result<(), String> {
    match fs::read(file).ok().and_then(|pem| key_type(&pem)) {
        Some(KeyType::MlDsa(_)) => Err(format!(
            "{}: it is an ML-DSA key, which the provider does not compute with: libssl has such signatures from OpenSSL \
             3.5 on, and signs by itself there; otherwise serve the certificate with `quadrille serve`",
            file.display()
        )),
        _ => Ok(()),
    }
}

fn key_type(pem: &[u8]) -> Option<KeyType> {
    if let Ok(key) = Key::from_pem(pem) {
        return Some(key.key_type());
    }
    let certificates = quadrille_pem::certificates(pem).unwrap_or_default();
    let public = match certificates.first() {
        Some(certificate) => certificate.public_key(),
        None => PKey::public_key_from_pem(pem),
    };
    PublicKey::from_pkey(public.ok()?).ok().map(|public| public.key_type())
}
