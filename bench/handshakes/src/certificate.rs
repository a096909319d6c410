//! The key and certificate shared by all servers of a scenario.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use boring::{pkey::PKey, rsa::Rsa};
use rcgen::{CertificateParams, KeyPair};

use crate::scenario::KeyKind;

/// A self-signed certificate for `localhost` and its key, as files in the formats that servers require.
#[derive(Debug)]
pub struct CertificateFiles {
    /// The certificate, PEM.
    pub chain: PathBuf,
    /// The private key, PKCS#8 PEM.
    pub key: PathBuf,
    /// Both in one file, for HAProxy.
    pub combined: PathBuf,
}

impl CertificateFiles {
    /// Generates a new key of `kind` and writes the files into `directory`, named after the kind.
    pub fn make(kind: KeyKind, directory: &Path) -> Result<Self> {
        let key = generate(kind).with_context(|| format!("cannot make a {kind} key"))?;
        let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?.pem();
        let private = key.serialize_pem();

        let files = Self::named(kind, directory);
        fs::write(&files.chain, &certificate)?;
        fs::write(&files.key, &private)?;
        fs::write(&files.combined, certificate + &private)?;
        Ok(files)
    }

    /// Returns the files that [`make`](Self::make) has written before.
    pub(crate) fn existing(kind: KeyKind, directory: &Path) -> Option<Self> {
        Some(Self::named(kind, directory)).filter(|files| files.combined.exists())
    }

    fn named(kind: KeyKind, directory: &Path) -> Self {
        let name = |suffix: &str| directory.join(format!("{kind}-{suffix}.pem").to_lowercase());
        Self { chain: name("chain"), key: name("key"), combined: name("combined") }
    }
}

fn generate(kind: KeyKind) -> Result<KeyPair> {
    match kind {
        KeyKind::P256 => Ok(KeyPair::generate()?),
        // rcgen's own cryptography signs with RSA keys but does not generate them.
        KeyKind::Rsa2048 | KeyKind::Rsa4096 => {
            let bits = if kind == KeyKind::Rsa2048 { 2048 } else { 4096 };
            let pem = PKey::from_rsa(Rsa::generate(bits)?)?.private_key_to_pem_pkcs8()?;
            Ok(KeyPair::from_pem(&String::from_utf8(pem)?)?)
        }
    }
}

#[cfg(test)]
mod tests {
    use boring::{pkey::Id, x509::X509};

    use super::*;

    #[test]
    fn key_and_certificate_belong_together() {
        let directory = tempfile::tempdir().unwrap();
        for (kind, id, bits) in [(KeyKind::P256, Id::EC, 256), (KeyKind::Rsa2048, Id::RSA, 2048)] {
            let files = CertificateFiles::make(kind, directory.path()).unwrap();
            let key = PKey::private_key_from_pem(&fs::read(&files.key).unwrap()).unwrap();
            let certificate = X509::from_pem(&fs::read(&files.combined).unwrap()).unwrap();
            assert_eq!((key.id(), key.bits()), (id, bits));
            assert!(certificate.public_key().unwrap().public_eq(&key));
        }
    }
}
