//! Issued certificates: validated before they are stored, and read again.

use crate::{AcmeError, schedule::Validity};
use base64ct::{Base64UrlUnpadded, Encoding};
use boring::{
    pkey::{HasPublic, PKeyRef},
    x509::{X509, X509Ref},
};
use instant_acme::CertificateIdentifier;
use quadrille_engine::Key;
use quadrille_keyless::wire::Ski;
use quadrille_pem::unix_time;
use std::{net::IpAddr, path::Path};
use zeroize::Zeroizing;

/// A certificate chain as it is stored, in one file with its key.
pub struct Issued {
    /// The certificates, leaf first.
    pub chain: Vec<X509>,
    /// Validity period of the leaf.
    pub validity: Validity,
}

/// Maximum chain length; Web PKI chains are shorter.
const LONGEST: usize = 10;

impl Issued {
    /// Reads a file; `None` if it does not exist or contains no certificate.
    pub fn read(file: &Path) -> Option<Self> {
        Self::parse(&Zeroizing::new(std::fs::read(file).ok()?))
    }

    /// Parses the contents of such a file.
    pub(crate) fn parse(pem: &[u8]) -> Option<Self> {
        let chain = quadrille_pem::certificates(pem).ok().filter(|chain| !chain.is_empty())?;
        let validity = validity(&chain[0]);
        Some(Self { chain, validity })
    }

    /// Validates the chain that an authority sent for this key and these names.
    pub(crate) fn new(pem: &str, key: &PKeyRef<impl HasPublic>, names: &[String]) -> Result<Self, AcmeError> {
        let garbage = |problem: &str| AcmeError::Garbage(problem.to_owned());
        let chain =
            quadrille_pem::certificates(pem.as_bytes()).map_err(|damage| garbage(&damage.to_string()))?;
        let leaf = chain.first().ok_or_else(|| garbage("no certificate"))?;
        if chain.len() > LONGEST {
            return Err(garbage("the chain has more than 10 certificates"));
        }
        if !leaf.public_key().is_ok_and(|public| key.public_eq(&public)) {
            return Err(garbage("the certificate is for another key"));
        }
        if let Some(name) = names.iter().find(|name| !has_name(leaf, name)) {
            return Err(AcmeError::Garbage(format!("the certificate does not contain the name {name}")));
        }
        for pair in chain.windows(2) {
            let signed = pair[1].public_key().and_then(|key| pair[0].verify(&key));
            if !signed.unwrap_or(false) {
                return Err(garbage("a certificate of the chain does not sign the one before it"));
            }
        }
        let validity = validity(leaf);
        if validity.not_after <= validity.not_before {
            return Err(garbage("the certificate is never valid"));
        }
        Ok(Self { chain, validity })
    }

    /// Serializes the chain in PEM, after the key if it is local: a reader that gets only the beginning finds no
    /// certificate.
    pub(crate) fn to_file(&self, key: Option<&Key>) -> Result<Zeroizing<Vec<u8>>, AcmeError> {
        let key = key.map(|key| key.pkey().private_key_to_pem_pkcs8()).transpose()?;
        let key = Zeroizing::new(key.unwrap_or_default());
        let links: Vec<_> = self.chain.iter().map(|link| link.to_pem()).collect::<Result<_, _>>()?;
        let chain = links.concat();
        // Allocated at once: buffers that a growing vector abandons would not be wiped.
        let mut file = Zeroizing::new(Vec::with_capacity(key.len() + chain.len()));
        file.extend_from_slice(&key);
        file.extend_from_slice(&chain);
        Ok(file)
    }

    /// Identifier of the key on key servers.
    pub(crate) fn key(&self) -> Option<Ski> {
        Ski::from_key(&*self.chain[0].public_key().ok()?).ok()
    }

    /// Identifier of the certificate at the authority (RFC 9773 section 4.1); `None` without an authority key
    /// identifier.
    pub(crate) fn identifier(&self) -> Option<CertificateIdentifier<'static>> {
        let leaf = &self.chain[0];
        let mut serial = leaf.serial_number().to_bn().ok()?.to_vec();
        // DER integer: a leading zero is added where the number would be negative.
        if serial.first().is_none_or(|first| first & 0x80 != 0) {
            serial.insert(0, 0);
        }
        Some(CertificateIdentifier {
            authority_key_identifier: Base64UrlUnpadded::encode_string(leaf.authority_key_id()?.as_slice())
                .into(),
            serial: Base64UrlUnpadded::encode_string(&serial).into(),
        })
    }
}

fn has_name(leaf: &X509Ref, name: &str) -> bool {
    let Some(names) = leaf.subject_alt_names() else { return false };
    match name.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => names.iter().any(|one| one.ipaddress() == Some(&address.octets()[..])),
        Ok(IpAddr::V6(address)) => names.iter().any(|one| one.ipaddress() == Some(&address.octets()[..])),
        Err(_) => names.iter().any(|one| one.dnsname().is_some_and(|one| one.eq_ignore_ascii_case(name))),
    }
}

fn validity(leaf: &X509Ref) -> Validity {
    Validity { not_before: unix_time(leaf.not_before()), not_after: unix_time(leaf.not_after()) }
}
