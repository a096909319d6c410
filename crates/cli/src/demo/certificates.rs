//! Self-signed certificates for localhost.

use crate::rsa_key;
use quadrille_config::model::{CertificateSource, KeySource, Place, Source};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};
use std::{
    error::Error,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    time::{Duration, SystemTime},
};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// Generates one certificate with an ECDSA key, for current clients, and one with an RSA key for the others.
pub(super) fn self_signed() -> Result<Vec<CertificateSource>, Box<dyn Error>> {
    [KeyPair::generate()?, rsa_key::generate(2048)?].iter().map(certificate).collect()
}

fn certificate(key: &KeyPair) -> Result<CertificateSource, Box<dyn Error>> {
    let mut params = CertificateParams::new(vec!["localhost".to_owned()])?;
    let loopback = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
    params.subject_alt_names.extend(loopback.map(SanType::IpAddress));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "Quadrille demo");
    let now = SystemTime::now();
    (params.not_before, params.not_after) = ((now - DAY).into(), (now + 90 * DAY).into());
    let certificate = params.self_signed(key)?;
    let place = Place::flag("demo");
    Ok(CertificateSource {
        chain: Source::inline(certificate.pem()),
        key: KeySource::Pem(Source::inline(key.serialize_pem())),
        ocsp: None,
        poll_delay: None,
        chain_place: place.clone(),
        key_place: place,
        ocsp_place: None,
        order: None,
        trust_anchor: None,
    })
}
