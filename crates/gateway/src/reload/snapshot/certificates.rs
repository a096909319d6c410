//! Certificates of a filter chain: loaded, pending, granted on demand, and shadowed by others.

use crate::tls::certificate::{files::Certificate, selection::shadowed};
use quadrille_config::{
    Diagnostic,
    model::{CertificateSource, Chain, Gateway, Problem, Tls, Version},
};
use quadrille_engine::KeyType;
use quadrille_ocsp::Staple;
use std::{collections::BTreeSet, sync::Arc};

/// Certificates of a filter chain, and names for which they are pending.
#[derive(Default)]
pub(super) struct OwnCertificates {
    /// Source of each certificate, in the same order.
    pub(super) sources: Vec<Arc<CertificateSource>>,
    pub(super) certificates: Vec<Arc<Certificate>>,
    pub(super) staples: Vec<Option<Arc<Staple>>>,
    /// Names of certificates that are ordered and not yet issued.
    pub(super) awaited: Vec<String>,
}

impl OwnCertificates {
    /// Returns whether there is, or will be, a certificate for this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let mut certified = self.certificates.iter().flat_map(|certificate| &certificate.names);
        certified.any(|known| known == name) || self.awaited.iter().any(|known| known == name)
    }
}

/// Returns whether any certificate is ordered; then further ones may be, on demand.
pub(super) fn orders(tls: &Tls) -> bool {
    tls.certificates.iter().any(|source| source.order.is_some())
}

/// Returns the certificates that were granted on demand so far.
pub(super) fn granted(model: &Gateway) -> Vec<Arc<CertificateSource>> {
    let Some(acme) = &model.acme else { return Vec::new() };
    let orders = quadrille_acme::granted(acme).into_iter();
    orders.map(|order| Arc::new(CertificateSource::ordered(acme, order, acme.place.clone()))).collect()
}

/// Returns a warning about cipher suites that no certificate of the chain can use.
pub(super) fn unusable_suites(chain: &Chain, certificates: &[Arc<Certificate>]) -> Option<String> {
    let tls = chain.tls.as_ref()?;
    // A certificate that is ordered may come with any key.
    if tls.certificates.iter().any(|source| source.order.is_some()) || tls.policy.min >= Version::Tls13 {
        return None;
    }
    let is_rsa = |certificate: &Arc<Certificate>| matches!(certificate.key.key_type(), KeyType::Rsa { .. });
    let has_rsa = certificates.iter().any(is_rsa);
    let has_ecdsa = certificates.iter().any(|certificate| {
        let key_type = certificate.key.key_type();
        !matches!(key_type, KeyType::Rsa { .. } | KeyType::MlDsa(_))
    });
    let unusable = |suite: &&String| if suite.contains("ECDSA") { !has_ecdsa } else { !has_rsa };
    let suites: Vec<_> = tls.policy.ciphers.iter().filter(unusable).map(String::as_str).collect();
    let kind = if has_rsa { "ECDSA" } else { "RSA" };
    (!suites.is_empty()).then(|| {
        format!(
            "{}: no certificate can use {} in `cipher_suites`; remove them, or add a certificate with an {kind} key",
            chain.place,
            suites.join(", ")
        )
    })
}

/// Returns the reason for which a certificate needs TLS 1.3, if it does.
fn needs_tls13(certificate: &Certificate) -> Option<&'static str> {
    match certificate.key.key_type() {
        KeyType::MlDsa(_) => Some("ML-DSA keys"),
        _ => certificate.negotiated_anchor().map(|_| "a trust anchor identifier"),
    }
}

/// Returns warnings about names of which all certificates are for clients that request a trust anchor.
pub(super) fn without_fallback(own: &[Arc<Certificate>], awaited: &[String]) -> Vec<String> {
    let is_for_all = |certificate: &&Arc<Certificate>| certificate.negotiated_anchor().is_none();
    let mut names: BTreeSet<_> = own.iter().flat_map(|certificate| &certificate.names).collect();
    for name in own.iter().filter(is_for_all).flat_map(|certificate| &certificate.names).chain(awaited) {
        names.remove(name);
    }
    let warning = |name| {
        format!(
            "clients that do not request a trust anchor are rejected for `{name}`: no certificate without \
             `trust_anchor` has this name; add one"
        )
    };
    names.into_iter().map(warning).collect()
}

/// Rejects a certificate that no client would receive: an operator would assume that it is in use.
pub(super) fn refuse_unused(
    tls: Option<&Tls>,
    sources: &[Arc<CertificateSource>],
    certificates: &[Arc<Certificate>],
) -> Result<(), Vec<Diagnostic>> {
    let has_tls13 = tls.is_none_or(|tls| tls.policy.max >= Version::Tls13);
    let all = sources.iter().zip(certificates).filter(|_| !has_tls13);
    let too_new = all.filter_map(|(source, certificate)| Some((source, needs_tls13(certificate)?)));
    let too_new = too_new.map(|(source, kind)| {
        let message = format!("no client would get {}: certificates with {kind} need TLS 1.3", source.chain);
        Diagnostic::new(
            &source.chain_place,
            Problem::new(message, "set the maximum version to 1.3, or remove it"),
        )
    });
    let shadowed = shadowed(certificates)
        .into_iter()
        .map(|(index, before)| {
            let (source, other) = (&sources[index], &sources[before]);
            let message = format!(
                "no client would get {}: every name in it has a certificate with the same type of key, {}, before it \
                 ({} at {})",
                source.chain,
                certificates[index].key.key_type(),
                other.chain,
                other.chain_place,
            );
            let remedy = "remove one of the two, or give it a key of another type";
            Diagnostic::new(&source.chain_place, Problem::new(message, remedy))
        });
    let problems: Vec<_> = too_new.chain(shadowed).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}
