//! Certificates of a PEM text.

use super::block::{Damage, blocks};
use boring::{
    asn1::{Asn1Time, Asn1TimeRef},
    x509::{X509, X509Ref},
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use std::{fmt, fs, path::Path};

/// Labels of a certificate: RFC 7468 section 5.1, and an old one.
const LABELS: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

/// Labels of certificates in other forms, with the remedy.
const OTHER_FORMS: [(&str, &str); 2] = [
    (
        "TRUSTED CERTIFICATE",
        "OpenSSL's own form of a certificate; convert it: openssl x509 -in FILE -out CERTIFICATE",
    ),
    (
        "PKCS7",
        "a bundle of certificates in PKCS #7; convert it: openssl pkcs7 -in FILE -print_certs -out CERTIFICATES",
    ),
];

/// Returns the certificates of a text, in its order. Blocks of other kinds, such as private keys, are ignored.
///
/// # Errors
/// If any block is damaged, or a certificate is not valid DER, or has another form.
pub fn certificates(text: &[u8]) -> Result<Vec<X509>, Damage> {
    let is_certificate = |block: &super::Block<'_>| LABELS.contains(&block.label);
    let read = |block: super::Block<'_>| {
        X509::from_der(&block.contents)
            .map_err(|_| Damage::new(block.line, "the certificate is not valid DER"))
    };
    let blocks = blocks(text)?;
    for block in &blocks {
        if let Some((label, form)) = OTHER_FORMS.iter().find(|(label, _)| *label == block.label) {
            return Err(Damage::new(block.line, format!("`BEGIN {label}` is {form}")));
        }
    }
    blocks.into_iter().filter(is_certificate).map(read).collect()
}

/// Reads a file of certificates, such as those of trusted CAs.
///
/// # Errors
/// Names the file: it cannot be read, is damaged, or has no certificate.
pub fn read_certificates(file: &Path) -> Result<Vec<X509>, String> {
    let unusable = |problem: &dyn fmt::Display| format!("{}: {problem}", file.display());
    let pem = fs::read(file).map_err(|error| unusable(&error))?;
    let found = certificates(&pem).map_err(|damage| unusable(&damage))?;
    if found.is_empty() { Err(unusable(&"no PEM certificates")) } else { Ok(found) }
}

/// Returns the Unix time, or zero for an invalid date, which no certificate should have.
pub fn unix_time(time: &Asn1TimeRef) -> i64 {
    const DAY: i64 = 24 * 3600;
    let since = Asn1Time::from_unix(0).and_then(|epoch| epoch.diff(time));
    since.map_or(0, |since| i64::from(since.days) * DAY + i64::from(since.secs))
}

/// Returns whether the key usage of a certificate allows signatures, which handshakes need (RFC 8446 section 4.4.2.2).
pub fn may_sign(certificate: &X509Ref) -> bool {
    // SAFETY: the certificate is live. Without the extension, all bits are set.
    let usage = unsafe { ffi::X509_get_key_usage(certificate.as_ptr()) };
    usage & ffi::X509v3_KU_DIGITAL_SIGNATURE.unsigned_abs() != 0
}

/// Returns whether a certificate has the URL of its issuer's certificate (RFC 5280 section 4.2.2.1), as those of
/// intermediate CAs do.
pub fn has_issuer_url(certificate: &X509Ref) -> bool {
    /// `id-ad-caIssuers` in DER.
    const CA_ISSUERS: &[u8] = &[0x06, 0x08, 0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x30, 0x02];
    let der = certificate.to_der().unwrap_or_default();
    der.windows(CA_ISSUERS.len()).any(|window| window == CA_ISSUERS)
}
