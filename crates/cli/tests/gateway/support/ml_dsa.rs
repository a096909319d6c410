//! Certificates with ML-DSA keys and signatures (RFC 9881), made by BoringSSL: the openssl command has them from 3.5 on.

use super::{Certificates, Pair};
use boring::{
    asn1::Asn1Time,
    base64::encode_block,
    bn::{BigNum, MsbOption},
    hash::MessageDigest,
    pkey::{Id, PKey, PKeyRef, Private},
    ssl::SslSignatureAlgorithm,
    x509::{
        X509, X509Builder, X509Extension, X509Name, X509Ref,
        extension::{BasicConstraints, ExtendedKeyUsage, SubjectAlternativeName},
    },
};
use boring_sys as ffi;
use foreign_types::{ForeignType, ForeignTypeRef};
use quadrille_engine::MlDsa;
use std::{fs, path::Path, ptr};

/// A CA whose signatures are of ML-DSA.
pub struct MlDsaAuthority {
    pub certificate: X509,
    key: PKey<Private>,
}

impl Certificates {
    /// Makes an ML-DSA certificate, signed by the CA, for these DNS names. The key file contains the seed.
    pub fn ml_dsa(&self, set: MlDsa, names: &[&str]) -> Pair {
        let stem = format!("{}-{}", label(set), names.join("-"));
        let pair = Pair { chain: self.path(&format!("{stem}.pem")), key: self.path(&format!("{stem}.key")) };
        let key = generate(set);
        write(&pair.key, &key.private_key_to_pem_pkcs8().expect("PEM"));
        self.certify(&pair, names);
        pair
    }

    /// Signs another certificate for the key of a pair.
    pub fn certify(&self, pair: &Pair, names: &[&str]) {
        let key = PKey::private_key_from_pem(&fs::read(&pair.key).expect("reading")).expect("a key");
        let (ca, own) = self.issuer();
        write(&pair.chain, &issue(Some(&ca), &own, &key, names).to_pem().expect("PEM"));
    }

    /// Makes a certificate of an OCSP responder with an ML-DSA key, signed by the CA.
    pub fn ml_dsa_responder(&self, set: MlDsa) -> (X509, PKey<Private>) {
        let (key, (ca, own)) = (generate(set), self.issuer());
        let purpose =
            |_: &X509Builder| ExtendedKeyUsage::new().other("OCSPSigning").build().expect("a purpose");
        (issue_with(Some(&ca), &own, &key, "responder", purpose), key)
    }

    fn issuer(&self) -> (X509, PKey<Private>) {
        let ca = X509::from_pem(&fs::read(self.ca()).expect("reading")).expect("the CA");
        let own = PKey::private_key_from_pem(&fs::read(self.path("ca.key")).expect("reading"));
        (ca, own.expect("the CA's key"))
    }
}

impl MlDsaAuthority {
    pub fn new(set: MlDsa) -> Self {
        let key = generate(set);
        Self { certificate: issue(None, &key, &key, &["ML-DSA CA"]), key }
    }

    /// Signs a certificate for the key of a pair.
    pub fn certify(&self, pair: &Pair, names: &[&str]) {
        let key = PKey::private_key_from_pem(&fs::read(&pair.key).expect("reading")).expect("a key");
        write(&pair.chain, &issue(Some(&self.certificate), &self.key, &key, names).to_pem().expect("PEM"));
    }
}

/// Writes a private key in PKCS #8 with another object identifier, parameters, or contents. `private` is the content of
/// the OCTET STRING.
pub fn write_key(file: &Path, algorithm: u8, parameters: &[u8], private: &[u8]) {
    let id = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 3, algorithm];
    let algorithm = der(0x30, &[&id[..], parameters].concat());
    let der = der(0x30, &[&[2, 1, 0][..], &algorithm, &der(4, private)].concat());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", encode_block(&der));
    write(file, pem.as_bytes());
}

/// Encodes an element in DER.
pub fn der(tag: u8, contents: &[u8]) -> Vec<u8> {
    let header = match u16::try_from(contents.len()).expect("a short element").to_be_bytes() {
        [0, short @ ..=127] => vec![tag, short],
        [0, long] => vec![tag, 0x81, long],
        [high, low] => vec![tag, 0x82, high, low],
    };
    [&header, contents].concat()
}

/// Returns BoringSSL's type of keys.
pub fn key_type(set: MlDsa) -> Id {
    Id::from_raw(match set {
        MlDsa::MlDsa44 => ffi::EVP_PKEY_ML_DSA_44,
        MlDsa::MlDsa65 => ffi::EVP_PKEY_ML_DSA_65,
        MlDsa::MlDsa87 => ffi::EVP_PKEY_ML_DSA_87,
    })
}

pub fn algorithm(set: MlDsa) -> SslSignatureAlgorithm {
    match set {
        MlDsa::MlDsa44 => SslSignatureAlgorithm::ML_DSA_44,
        MlDsa::MlDsa65 => SslSignatureAlgorithm::ML_DSA_65,
        MlDsa::MlDsa87 => SslSignatureAlgorithm::ML_DSA_87,
    }
}

/// Returns the name in metrics.
pub fn label(set: MlDsa) -> &'static str {
    match set {
        MlDsa::MlDsa44 => "mldsa44",
        MlDsa::MlDsa65 => "mldsa65",
        MlDsa::MlDsa87 => "mldsa87",
    }
}

fn generate(set: MlDsa) -> PKey<Private> {
    // SAFETY: the algorithms are static, and the caller owns the new key.
    unsafe {
        let key = ffi::EVP_PKEY_generate_from_alg(match set {
            MlDsa::MlDsa44 => ffi::EVP_pkey_ml_dsa_44(),
            MlDsa::MlDsa65 => ffi::EVP_pkey_ml_dsa_65(),
            MlDsa::MlDsa87 => ffi::EVP_pkey_ml_dsa_87(),
        });
        assert!(!key.is_null(), "no key");
        PKey::from_ptr(key)
    }
}

/// Issues a certificate; without an issuer, that of a CA, which signs itself.
fn issue(
    issuer: Option<&X509Ref>,
    signer: &PKeyRef<Private>,
    key: &PKeyRef<Private>,
    names: &[&str],
) -> X509 {
    issue_with(issuer, signer, key, names[0], |builder| {
        let extension = if issuer.is_none() {
            BasicConstraints::new().critical().ca().build()
        } else {
            let mut alternatives = SubjectAlternativeName::new();
            for name in names {
                alternatives.dns(name);
            }
            alternatives.build(&builder.x509v3_context(issuer, None))
        };
        extension.expect("an extension")
    })
}

fn issue_with(
    issuer: Option<&X509Ref>,
    signer: &PKeyRef<Private>,
    key: &PKeyRef<Private>,
    name: &str,
    extension: impl FnOnce(&X509Builder) -> X509Extension,
) -> X509 {
    let mut subject = X509Name::builder().expect("a name");
    subject.append_entry_by_text("CN", name).expect("a common name");
    let subject = subject.build();
    let mut builder = X509::builder().expect("a certificate");
    let mut serial = BigNum::new().expect("a number");
    serial.rand(64, MsbOption::ONE, false).expect("a random number");
    builder.set_version(2).expect("a version");
    builder.set_serial_number(&serial.to_asn1_integer().expect("a number")).expect("a serial number");
    builder.set_subject_name(&subject).expect("a subject");
    builder.set_issuer_name(issuer.map_or(&*subject, X509Ref::subject_name)).expect("an issuer");
    builder.set_not_before(&Asn1Time::days_from_now(0).expect("a date")).expect("a date");
    builder.set_not_after(&Asn1Time::days_from_now(30).expect("a date")).expect("a date");
    builder.set_pubkey(key).expect("a key");
    let extension = extension(&builder);
    builder.append_extension(&extension).expect("an extension");
    let certificate = builder.build();
    let digest = match signer.id() {
        Id::EC => MessageDigest::sha256().as_ptr(),
        _ => ptr::null(),
    };
    // SAFETY: certificate and key are live; ML-DSA has no digest.
    assert!(unsafe { ffi::X509_sign(certificate.as_ptr(), signer.as_ptr(), digest) } > 0, "signing");
    certificate
}

fn write(file: &Path, contents: &[u8]) {
    fs::write(file, contents).expect("writing");
}
