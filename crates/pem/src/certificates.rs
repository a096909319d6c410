//! Certificates of a PEM text.

use super::block::{Damage, blocks};
use boring::x509::X509;

/// Labels of a certificate: RFC 7468 section 5.1, and an old one.
const LABELS: [&str; 2] = ["CERTIFICATE", "X509 CERTIFICATE"];

/// Returns the certificates of a text, in its order. Blocks of other kinds, such as private keys, are ignored.
///
/// # Errors
/// If any block is damaged, or a certificate is not valid DER.
pub fn certificates(text: &[u8]) -> Result<Vec<X509>, Damage> {
    let is_certificate = |block: &super::Block<'_>| LABELS.contains(&block.label);
    let read = |block: super::Block<'_>| {
        X509::from_der(&block.contents)
            .map_err(|_| Damage::new(block.line, "the certificate is not valid DER"))
    };
    blocks(text)?.into_iter().filter(is_certificate).map(read).collect()
}
