//! What the authority is answered while it validates names.

use boring::{
    asn1::{Asn1Integer, Asn1Time},
    bn::BigNum,
    ec::{EcGroup, EcKey},
    error::ErrorStack,
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    x509::{X509, X509Extension, X509NameBuilder, extension::SubjectAlternativeName},
};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    fmt::Write as _,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};

/// The answers to the challenges of the orders that are under way. Listeners ask it.
#[derive(Default)]
pub struct Answers(RwLock<Table>);

#[derive(Default)]
struct Table {
    http: HashMap<String, String>,
    tls_alpn: HashMap<String, Arc<TlsAlpnCertificate>>,
}

/// The certificate that proves a name in a handshake with the protocol `acme-tls/1` (RFC 8737 section 3).
pub struct TlsAlpnCertificate {
    /// Self-signed, for the name alone.
    pub certificate: X509,
    /// Made for it, and for nothing else.
    pub key: PKey<Private>,
}

/// The answer to one challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// To a request for the path of this token (RFC 8555 section 8.3).
    Http { token: String, key_authorization: String },
    /// In handshakes for this name or address.
    TlsAlpn { name: String, digest: Vec<u8> },
}

impl Answers {
    /// What a request for `/.well-known/acme-challenge/TOKEN` is answered.
    pub fn http(&self, token: &str) -> Option<String> {
        self.read().http.get(token).cloned()
    }

    /// What a client with the ALPN protocol `acme-tls/1` and this SNI, in lower case, is shown.
    pub fn tls_alpn(&self, server_name: &str) -> Option<Arc<TlsAlpnCertificate>> {
        self.read().tls_alpn.get(server_name).cloned()
    }

    /// From now on there are these, and no others.
    pub(crate) fn replace(&self, answers: &[Answer]) -> Result<(), ErrorStack> {
        let mut table = Table::default();
        for answer in answers {
            match answer {
                Answer::Http { token, key_authorization } => {
                    table.http.insert(token.clone(), key_authorization.clone());
                }
                Answer::TlsAlpn { name, digest } => {
                    let certificate = TlsAlpnCertificate::new(name, digest)?;
                    table.tls_alpn.insert(server_name(name), Arc::new(certificate));
                }
            }
        }
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TlsAlpnCertificate {
    fn new(name: &str, digest: &[u8]) -> Result<Self, ErrorStack> {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
        let key = PKey::from_ec_key(EcKey::generate(&group)?)?;
        let mut builder = X509::builder()?;
        builder.set_version(2)?;
        let serial = Asn1Integer::from_bn(&*BigNum::from_u32(1)?)?;
        builder.set_serial_number(&serial)?;
        let mut subject = X509NameBuilder::new()?;
        subject.append_entry_by_nid(Nid::COMMONNAME, "ACME challenge")?;
        let subject = subject.build();
        builder.set_subject_name(&subject)?;
        builder.set_issuer_name(&subject)?;
        builder.set_pubkey(&key)?;
        // An authority whose clock is behind does not mind: it looks at nothing but the extensions.
        let (yesterday, later) =
            (Asn1Time::from_unix(crate::unix_now() - 86_400)?, Asn1Time::days_from_now(7)?);
        builder.set_not_before(&yesterday)?;
        builder.set_not_after(&later)?;
        let mut names = SubjectAlternativeName::new();
        match name.parse::<IpAddr>() {
            Ok(_) => names.ip(name),
            Err(_) => names.dns(name),
        };
        let names = names.build(&builder.x509v3_context(None, None))?;
        builder.append_extension(&names)?;
        let identifier = identifier_extension(digest)?;
        builder.append_extension(&identifier)?;
        builder.sign(&key, MessageDigest::sha256())?;
        Ok(Self { certificate: builder.build(), key })
    }
}

/// `id-pe-acmeIdentifier`, critical, with the digest as an OCTET STRING.
fn identifier_extension(digest: &[u8]) -> Result<X509Extension, ErrorStack> {
    let mut value = format!("critical,DER:04:{:02x}", digest.len());
    for byte in digest {
        let _ = write!(value, ":{byte:02x}");
    }
    X509Extension::new(None, None, "1.3.6.1.5.5.7.1.31", &value)
}

/// The SNI that the authority sends: of an address, its name in reverse DNS (RFC 8738 section 6).
fn server_name(name: &str) -> String {
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{d}.{c}.{b}.{a}.in-addr.arpa")
        }
        Ok(IpAddr::V6(address)) => {
            let nibbles = address.octets().into_iter().rev().flat_map(|byte| [byte & 15, byte >> 4]);
            let mut name: String = nibbles.map(|nibble| format!("{nibble:x}.")).collect();
            name.push_str("ip6.arpa");
            name
        }
        Err(_) => name.to_ascii_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_for_a_challenge_has_the_name_and_the_digest() {
        let answers = Answers::default();
        let digest: Vec<u8> = (0..32).collect();
        let answer = |name: &str| Answer::TlsAlpn { name: name.to_owned(), digest: digest.clone() };
        answers.replace(&[answer("a.example"), answer("192.0.2.7")]).unwrap();
        let shown = answers.tls_alpn("a.example").unwrap();
        let der = shown.certificate.to_der().unwrap();
        let identifier =
            [&[0x06, 8, 0x2b, 6, 1, 5, 5, 7, 1, 31, 1, 1, 0xff, 4, 34, 4, 32][..], &digest].concat();
        assert!(der.windows(identifier.len()).any(|window| window == identifier));
        assert!(shown.certificate.check_host("a.example").unwrap());
        assert!(answers.tls_alpn("7.2.0.192.in-addr.arpa").is_some());
        answers.replace(&[]).unwrap();
        assert!(answers.tls_alpn("a.example").is_none());
    }

    #[test]
    fn the_names_of_addresses_are_those_of_reverse_dns() {
        let expected = "1.".to_owned() + &"0.".repeat(23) + "8.b.d.0.1.0.0.2.ip6.arpa";
        assert_eq!(server_name("2001:db8::1"), expected);
        assert_eq!(server_name("WWW.example"), "www.example");
    }
}
