//! Matching of subjectAltNames in the peer's certificate (RFC 5280 section 4.2.1.6).

use boring::{
    ssl::SslRef,
    x509::{GeneralNameRef, X509Ref},
};
use quadrille_config::model::{AltName, AltNameKind, TextRule};
use std::{io, net::IpAddr};

/// Verifies that the server's certificate has one of these names, if there are any. Call it before sending anything
/// to the server; a resumed session includes the certificate.
///
/// # Errors
/// Returns an error if the certificate has no matching name.
pub fn verify_server_names(ssl: &SslRef, wanted: &[AltName]) -> io::Result<()> {
    let is_named = || ssl.peer_certificate().is_some_and(|certificate| has_one_of(&certificate, wanted));
    if wanted.is_empty() || is_named() {
        Ok(())
    } else {
        Err(io::Error::other("the server certificate matches none of the required subjectAltNames"))
    }
}

/// Returns whether one of the certificate's names matches.
pub(crate) fn has_one_of(certificate: &X509Ref, wanted: &[AltName]) -> bool {
    let Some(names) = certificate.subject_alt_names() else { return false };
    names.iter().any(|name| wanted.iter().any(|wanted| matches(wanted, name)))
}

fn matches(wanted: &AltName, name: &GeneralNameRef) -> bool {
    let text = match wanted.kind {
        AltNameKind::Dns => name.dnsname().map(str::to_owned),
        AltNameKind::Uri => name.uri().map(str::to_owned),
        AltNameKind::Email => name.email().map(str::to_owned),
        AltNameKind::Ip => name.ipaddress().and_then(ip).map(|ip| ip.to_string()),
    };
    text.is_some_and(|text| {
        wanted.text.matches(&text) || wanted.kind == AltNameKind::Dns && is_below(wanted, &text)
    })
}

/// Returns whether a certificate's `*.example.com` matches the exact name wanted; the wildcard matches one label (RFC
/// 6125 section 6.4.3).
fn is_below(wanted: &AltName, name: &str) -> bool {
    let TextRule::Exact(exact) = &wanted.text.rule else { return false };
    let parent = exact.split_once('.').map(|(_, parent)| parent);
    name.strip_prefix("*.").zip(parent).is_some_and(|(covered, parent)| covered.eq_ignore_ascii_case(parent))
}

fn ip(bytes: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(bytes)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}
