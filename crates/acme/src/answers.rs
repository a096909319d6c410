//! Responses to the authority's challenges.

use crate::{AcmeError, Plan, certificate_request::challenge_params};
use boring::{
    pkey::{PKey, Private},
    x509::X509,
};
use quadrille_engine::PublicKey;
use quadrille_keyless::client::{Client, RemoteKey};
use serde::{Deserialize, Serialize};
use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{Arc, PoisonError, RwLock},
};
use zeroize::Zeroizing;

/// Responses to the challenges of the pending orders. Listeners look them up here.
#[derive(Default)]
pub struct Answers(RwLock<Table>);

#[derive(Default)]
struct Table {
    /// The plan that the orders belong to.
    plan: Option<Plan>,
    http: HashMap<String, String>,
    tls_alpn: HashMap<String, Arc<TlsAlpnCertificate>>,
}

/// Certificate that proves control of a name in a handshake with the protocol `acme-tls/1` (RFC 8737 section 3).
pub struct TlsAlpnCertificate {
    /// Self-signed, for the name alone.
    pub certificate: X509,
    /// Private key of the certificate.
    pub key: ChallengeKey,
}

/// Private key of a validation certificate.
pub enum ChallengeKey {
    /// Generated for this certificate only.
    Local(PKey<Private>),
    /// The key of the ordered certificate, held on key servers.
    Remote(RemoteKey, Client),
}

/// Response to one challenge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// Body for a request to the path of this token (RFC 8555 section 8.3).
    Http { token: String, key_authorization: String },
    /// Digest for handshakes for this name or address.
    TlsAlpn { name: String, digest: Vec<u8> },
    /// Certificate in DER for handshakes for this name, signed on the key servers of this order.
    TlsAlpnSigned { name: String, certificate: Vec<u8>, order: String },
}

impl Answers {
    /// Returns the response body for `/.well-known/acme-challenge/TOKEN`.
    pub fn http(&self, token: &str) -> Option<String> {
        self.read().http.get(token).cloned()
    }

    /// Returns the certificate for a client that offers the ALPN protocol `acme-tls/1` and this SNI, in lower case.
    pub fn tls_alpn(&self, server_name: &str) -> Option<Arc<TlsAlpnCertificate>> {
        self.read().tls_alpn.get(server_name).cloned()
    }

    /// Sets the plan that the following orders belong to.
    pub(crate) fn belong_to(&self, plan: &Plan) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).plan = Some(plan.clone());
    }

    /// Replaces all responses.
    pub(crate) fn replace(&self, answers: &[Answer]) -> Result<(), AcmeError> {
        let plan = self.read().plan.clone();
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
                Answer::TlsAlpnSigned { name, certificate, order } => {
                    let client = plan.as_ref().and_then(|plan| plan.client(order)).ok_or_else(|| {
                        AcmeError::KeyServer(format!("no key servers are configured here for {order}"))
                    })?;
                    let certificate = TlsAlpnCertificate::signed(certificate, client)?;
                    table.tls_alpn.insert(server_name(name), Arc::new(certificate));
                }
            }
        }
        table.plan = plan;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = table;
        Ok(())
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Table> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TlsAlpnCertificate {
    fn new(name: &str, digest: &[u8]) -> Result<Self, AcmeError> {
        let key = rcgen::KeyPair::generate()?;
        let certificate = challenge_params(name, digest)?.self_signed(&key)?;
        let key = PKey::private_key_from_der(&Zeroizing::new(key.serialize_der()))?;
        Ok(Self { certificate: X509::from_der(certificate.der())?, key: ChallengeKey::Local(key) })
    }

    fn signed(certificate: &[u8], client: Client) -> Result<Self, AcmeError> {
        let certificate = X509::from_der(certificate)?;
        let garbage = |problem: String| AcmeError::Garbage(format!("challenge certificate: {problem}"));
        let public = PublicKey::from_pkey(certificate.public_key()?);
        let key = RemoteKey::new(public.map_err(|error| garbage(error.to_string()))?)?;
        Ok(Self { certificate, key: ChallengeKey::Remote(key, client) })
    }
}

/// The SNI that the authority sends; for an address, its reverse DNS name (RFC 8738 section 6).
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
