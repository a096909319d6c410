//! Certificates that a certificate authority issues by ACME (RFC 8555).

use super::{Keyless, Place};
use std::{
    net::IpAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

/// The account with a certificate authority, and the storage of its certificates.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Acme {
    /// Mail address for the authority.
    pub email: Option<String>,
    /// URL of the authority's directory (RFC 8555 section 7.1.1).
    pub directory: String,
    /// CA certificates (PEM) that the directory's server must chain to; `None` uses the system's.
    pub ca_file: Option<(PathBuf, Place)>,
    /// Directory with the account's key, the certificates and their keys.
    pub state: PathBuf,
    /// Challenges that prove control of names, most preferred first.
    pub challenges: Vec<AcmeChallenge>,
    /// The command that puts a TXT record into DNS and removes it.
    pub dns_hook: Option<(PathBuf, Place)>,
    /// The external account to which this one is bound (RFC 8555 section 7.3.4).
    pub external_account: Option<ExternalAccount>,
    /// Whether the account is shared with the fleet of `resumption`, if there is one.
    pub fleet: AcmeFleet,
    /// Certificates for names that are not configured.
    pub on_demand: Option<AcmeOnDemand>,
    /// The place in the configuration.
    pub place: Place,
}

/// Settings of on-demand certificates, ordered when a client first requests their names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeOnDemand {
    /// URL of the service that decides whether a name may be ordered: status 200 allows it.
    pub ask: String,
    /// CA certificates (PEM) that its server must chain to, with `https`; `None` uses the system's.
    pub ca_file: Option<(PathBuf, Place)>,
    /// Maximum number of names.
    pub names: NonZeroUsize,
    /// Maximum number of new names in an hour.
    pub per_hour: NonZeroUsize,
    /// The type of the key of each certificate.
    pub key_type: AcmeKeyType,
    /// The key servers that generate and hold the key; `None` generates and stores it here.
    pub keyless: Option<Box<Keyless>>,
}

impl AcmeOnDemand {
    /// Returns settings with limits well below those of an authority.
    pub fn new(ask: String) -> Self {
        let count = |more| NonZeroUsize::MIN.saturating_add(more);
        let key_type = AcmeKeyType::EcdsaP256;
        Self { ask, ca_file: None, names: count(999), per_hour: count(19), key_type, keyless: None }
    }

    /// Returns the order for a name.
    pub fn order(&self, name: String) -> AcmeOrder {
        AcmeOrder { names: vec![name], key_type: self.key_type, profile: None, keyless: self.keyless.clone() }
    }
}

/// Whether the gateways of a fleet share account, certificates and orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeFleet {
    /// Shared; no gateway orders while Redis is unreachable.
    Required,
    /// Shared; each gateway orders for itself while Redis is unreachable.
    Preferred,
    /// Separate accounts; each gateway orders for itself.
    Off,
}

/// An account outside of ACME.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ExternalAccount {
    /// The key identifier issued by the authority.
    pub id: String,
    /// A file with the MAC key issued by the authority, in base64url.
    pub key_file: (PathBuf, Place),
}

/// A challenge type, which proves control of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AcmeChallenge {
    /// A certificate in a TLS handshake on port 443 (RFC 8737).
    TlsAlpn01,
    /// A response to a request on port 80 (RFC 8555 section 8.3).
    Http01,
    /// A TXT record (RFC 8555 section 8.4), and the only one for wildcards.
    Dns01,
}

/// An order of a certificate.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AcmeOrder {
    /// DNS names, in lower case, wildcards included, and IP addresses.
    pub names: Vec<String>,
    /// The type of the key.
    pub key_type: AcmeKeyType,
    /// One of the authority's profiles.
    pub profile: Option<String>,
    /// The key servers that generate and hold the key; `None` generates and stores it here.
    pub keyless: Option<Box<Keyless>>,
}

/// The type of a key that is generated for an order.
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

    /// Returns an account with Let's Encrypt, with challenges that this gateway handles alone.
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

    /// Returns the configured challenges that can prove a name, in order of preference.
    pub fn challenges_for<'a>(&'a self, name: &str) -> impl Iterator<Item = AcmeChallenge> + use<'a> {
        let (wildcard, address) = (name.starts_with("*."), name.parse::<IpAddr>().is_ok());
        self.challenges.iter().copied().filter(move |challenge| match challenge {
            AcmeChallenge::TlsAlpn01 | AcmeChallenge::Http01 => !wildcard,
            AcmeChallenge::Dns01 => !address,
        })
    }
}

impl AcmeKeyType {
    /// Returns the name in configurations, and in file names.
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
    /// Returns the file of the certificate, and of its key if that is stored here. Orders with other names, another
    /// key type or another location of the key have different files.
    pub fn file(&self, state: &Path) -> PathBuf {
        let ending = if self.keyless.is_some() { "keyless.pem" } else { "pem" };
        state.join("certificates").join(format!("{}.{ending}", self.label()))
    }

    /// Returns a label that is unique to the order and valid in file names: the first name, a digest of the others,
    /// the key type.
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

/// FNV-1a, which must not change between versions: file names depend on it, but no secrets do.
fn digest(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
