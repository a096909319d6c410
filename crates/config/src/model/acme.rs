//! Certificates that a certificate authority issues by ACME (RFC 8555).

use super::{Keyless, Place};
use std::{
    net::IpAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// The account with a certificate authority, and where what comes from there is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acme {
    /// Where the authority sends its mail.
    pub email: Option<String>,
    /// URL of the authority's directory (RFC 8555 section 7.1.1).
    pub directory: String,
    /// CA certificates (PEM) that the directory's server must lead to; the system's without them.
    pub ca_file: Option<(PathBuf, Place)>,
    /// The directory of the account's key, the certificates and their keys.
    pub state: PathBuf,
    /// How this side proves that a name is its own, most preferred first.
    pub challenges: Vec<AcmeChallenge>,
    /// The command that puts a TXT record into DNS and removes it.
    pub dns_hook: Option<PathBuf>,
    /// The account at the authority outside of ACME that this one belongs to (RFC 8555 section 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// Whether it is shared with the fleet that `resumption` names, if it names one.
    pub fleet: AcmeFleet,
    /// Certificates for names that are not configured.
    pub on_demand: Option<AcmeOnDemand>,
    /// Where it was written.
    pub place: Place,
}

/// Certificates that are ordered once a client has asked for their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeOnDemand {
    /// URL that says whether a name may be ordered: 200 is yes.
    pub ask: String,
    /// CA certificates (PEM) that its server must lead to, with `https`; the system's without them.
    pub ca_file: Option<PathBuf>,
    /// Names at most.
    pub names: NonZeroUsize,
    /// New names in an hour.
    pub per_hour: NonZeroUsize,
    /// The key that is made for each.
    pub key_type: AcmeKeyType,
    /// The key servers that make it and keep it; it is made and kept here without.
    pub keyless: Option<Box<Keyless>>,
}

impl AcmeOnDemand {
    /// With limits that leave room in an authority's.
    pub fn new(ask: String) -> Self {
        let count = |more| NonZeroUsize::MIN.saturating_add(more);
        let key_type = AcmeKeyType::EcdsaP256;
        Self { ask, ca_file: None, names: count(999), per_hour: count(19), key_type, keyless: None }
    }

    /// What is ordered for a name.
    pub fn order(&self, name: String) -> AcmeOrder {
        AcmeOrder { names: vec![name], key_type: self.key_type, profile: None, keyless: self.keyless.clone() }
    }
}

/// Whether the gateways of a fleet share account, certificates and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeFleet {
    /// They do, and none orders while the fleet cannot be asked.
    Required,
    /// They do, and each orders for itself while the fleet cannot be asked.
    Preferred,
    /// Each orders for itself.
    Off,
}

/// An account outside of ACME.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalAccount {
    /// The key identifier that the authority gave.
    pub id: String,
    /// A file with the MAC key that the authority gave, in base64url.
    pub key_file: (PathBuf, Place),
}

/// How a name is proved to be one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeChallenge {
    /// A certificate in a TLS handshake on port 443 (RFC 8737).
    TlsAlpn01,
    /// An answer to a request on port 80 (RFC 8555 section 8.3).
    Http01,
    /// A TXT record (RFC 8555 section 8.4), and the only one for wildcards.
    Dns01,
}

/// A certificate to be ordered.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeOrder {
    /// DNS names, in lower case, wildcards included, and IP addresses.
    pub names: Vec<String>,
    /// The key that is made for it.
    pub key_type: AcmeKeyType,
    /// One of the authority's profiles.
    pub profile: Option<String>,
    /// The key servers that make the key and keep it; it is made and kept here without.
    pub keyless: Option<Box<Keyless>>,
}

/// A kind of key that is made for an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeKeyType {
    /// ECDSA on P-256.
    EcdsaP256,
    /// ECDSA on P-384.
    EcdsaP384,
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
}

impl Acme {
    /// Let's Encrypt's directory.
    pub const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

    /// Let's Encrypt, with challenges that need nothing but this gateway.
    pub fn new(state: PathBuf, place: Place) -> Self {
        Self {
            email: None,
            directory: Self::LETS_ENCRYPT.to_owned(),
            ca_file: None,
            state,
            challenges: vec![AcmeChallenge::TlsAlpn01, AcmeChallenge::Http01],
            dns_hook: None,
            external_account: None,
            fleet: AcmeFleet::Required,
            on_demand: None,
            place,
        }
    }

    /// The challenge for a name: the first of the configured ones that can prove it.
    pub fn challenges_for<'a>(&'a self, name: &str) -> impl Iterator<Item = AcmeChallenge> + use<'a> {
        let (wildcard, address) = (name.starts_with("*."), name.parse::<IpAddr>().is_ok());
        self.challenges.iter().copied().filter(move |challenge| match challenge {
            AcmeChallenge::TlsAlpn01 | AcmeChallenge::Http01 => !wildcard,
            AcmeChallenge::Dns01 => !address,
        })
    }
}

impl AcmeKeyType {
    /// What it is called in configurations, and in the names of files.
    pub fn label(self) -> &'static str {
        match self {
            Self::EcdsaP256 => "ecdsa-p256",
            Self::EcdsaP384 => "ecdsa-p384",
            Self::Rsa2048 => "rsa-2048",
            Self::Rsa3072 => "rsa-3072",
            Self::Rsa4096 => "rsa-4096",
        }
    }
}

impl AcmeOrder {
    /// The file of the certificate, and of its key if that is here: what is ordered for other names or another key, or
    /// has its key elsewhere, has another file.
    pub fn file(&self, state: &Path) -> PathBuf {
        let ending = if self.keyless.is_some() { "keyless.pem" } else { "pem" };
        state.join("certificates").join(format!("{}.{ending}", self.label()))
    }

    /// What tells it from others, in characters of files' names: the first name, a digest of the others, the key.
    pub fn label(&self) -> String {
        let key_type = self.key_type.label();
        let first = self.names.first().map_or("", String::as_str).replace('*', "_").replace(':', "-");
        let mut others: Vec<_> = self.names.iter().skip(1).map(String::as_str).collect();
        others.sort_unstable();
        match others.is_empty() {
            true => format!("{first}.{key_type}"),
            false => format!("{first}.{:016x}.{key_type}", digest(&others.join(","))),
        }
    }
}

/// FNV-1a, which stays the same from version to version: the names of files depend on it, and no secrets.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
