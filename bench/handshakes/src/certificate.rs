//! The key and certificate shared by all servers of a scenario.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use boring::{
    asn1::Asn1Time,
    bn::BigNum,
    ec::{EcGroup, EcKey},
    hash::MessageDigest,
    nid::Nid,
    pkey::PKey,
    rsa::Rsa,
    x509::{X509, X509Name, extension::SubjectAlternativeName},
};
use quadrille_engine::{Key, KeyType, MlDsa};
use rcgen::{CertificateParams, KeyPair};

use crate::scenario::KeyKind;

/// A certificate for `localhost` and its key, as files in the formats that servers require.
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
        let (certificate, private) = certified(kind).with_context(|| format!("cannot make a {kind} key"))?;
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

/// Returns a certificate and its key, PEM. It is self-signed, except with ML-DSA.
fn certified(kind: KeyKind) -> Result<(String, String)> {
    let key = match kind {
        KeyKind::P256 => KeyPair::generate()?,
        KeyKind::Rsa2048 => rsa(2048)?,
        KeyKind::Rsa4096 => rsa(4096)?,
        KeyKind::MlDsa44 => return ml_dsa_44(),
    };
    let certificate = CertificateParams::new(["localhost".to_owned()])?.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

/// Makes an RSA key by BoringSSL: rcgen's own cryptography signs with RSA keys but does not generate them.
fn rsa(bits: u32) -> Result<KeyPair> {
    let pem = PKey::from_rsa(Rsa::generate(bits)?)?.private_key_to_pem_pkcs8()?;
    Ok(KeyPair::from_pem(&String::from_utf8(pem)?)?)
}

/// Makes a certificate with an ML-DSA-44 key by BoringSSL, which rcgen does not know; a P-256 key signs it.
fn ml_dsa_44() -> Result<(String, String)> {
    let key = Key::generate(KeyType::MlDsa(MlDsa::MlDsa44))?;
    let issuer = EcKey::generate(&*EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?)?;
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&*BigNum::from_u32(1)?.to_asn1_integer()?)?;
    builder.set_subject_name(&*name("localhost")?)?;
    builder.set_issuer_name(&*name("P-256 CA")?)?;
    builder.set_not_before(&*Asn1Time::days_from_now(0)?)?;
    builder.set_not_after(&*Asn1Time::days_from_now(30)?)?;
    builder.set_pubkey(key.public().pkey())?;
    let names = SubjectAlternativeName::new().dns("localhost").build(&builder.x509v3_context(None, None))?;
    builder.append_extension(&names)?;
    builder.sign(&*PKey::from_ec_key(issuer)?, MessageDigest::sha256())?;
    let certificate = String::from_utf8(builder.build().to_pem()?)?;
    Ok((certificate, String::from_utf8(key.pkey().private_key_to_pem_pkcs8()?)?))
}

fn name(common: &str) -> Result<X509Name> {
    let mut name = X509Name::builder()?;
    name.append_entry_by_text("CN", common)?;
    Ok(name.build())
}

#[cfg(test)]
mod tests {
    use boring::pkey::Id;

    use super::*;

    #[test]
    fn key_and_certificate_belong_together() {
        let directory = tempfile::tempdir().unwrap();
        for kind in [KeyKind::P256, KeyKind::Rsa2048, KeyKind::MlDsa44] {
            let files = CertificateFiles::make(kind, directory.path()).unwrap();
            let key = PKey::private_key_from_pem(&fs::read(&files.key).unwrap()).unwrap();
            let certificate = X509::from_pem(&fs::read(&files.combined).unwrap()).unwrap();
            match kind {
                KeyKind::P256 => assert_eq!((key.id(), key.bits()), (Id::EC, 256)),
                KeyKind::Rsa2048 => assert_eq!((key.id(), key.bits()), (Id::RSA, 2048)),
                _ => assert!(key.id() != Id::EC && key.id() != Id::RSA),
            }
            assert!(certificate.public_key().unwrap().public_eq(&key));
        }
    }
}
