//! Private keys on key servers.

use super::{Pkcs11Key, Place, Source};
use crate::model::key_server::{Address, Protocol};
use std::{fmt, time::Duration};

/// The source of a certificate's private key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// A local key. PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    Pem(Source),
    /// Key servers that hold the key.
    Keyless(Box<Keyless>),
    /// A PKCS#11 token of this machine that holds the key.
    Pkcs11(Box<Pkcs11Key>),
}

/// Key servers, and the settings of their connections.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keyless {
    /// The addresses; all servers should hold the same keys.
    pub servers: Vec<Address>,
    /// Mutual TLS with the servers; needed for servers over TCP.
    pub tls: Option<KeylessTls>,
    /// The mode of the protocol.
    pub protocol: Protocol,
    /// Whether frames of Quadrille's own mode are padded.
    pub padding: bool,
    /// Time after which an operation without a result fails.
    pub timeout: Duration,
    /// Whether slow operations are sent to a second server as well.
    pub hedge: bool,
    /// The operations that are sent to the servers.
    pub usage: KeyServerUse,
    /// The private key in PEM, for operations that are not sent to the servers or fail there.
    pub fallback: Option<Source>,
}

/// The operations that are sent to key servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyServerUse {
    /// All.
    #[default]
    Always,
    /// Operations that would wait too long here.
    Overflow,
}

/// Mutual TLS with key servers. All values are in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeylessTls {
    /// The CAs that the servers' certificates must chain to.
    pub ca: (Source, Place),
    /// The gateway's own certificate, leaf first.
    pub certificate: (Source, Place),
    /// The key of the certificate.
    pub key: (Source, Place),
}

impl Keyless {
    /// Returns these servers with default settings.
    pub fn new(servers: Vec<Address>) -> Self {
        Self {
            servers,
            tls: None,
            protocol: Protocol::Auto,
            padding: false,
            timeout: Duration::from_secs(5),
            hedge: true,
            usage: KeyServerUse::Always,
            fallback: None,
        }
    }

    /// Returns all sources: files and inline values.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let tls = self.tls.iter().flat_map(|tls| [&tls.ca.0, &tls.certificate.0, &tls.key.0]);
        tls.chain(&self.fallback)
    }
}

impl KeySource {
    /// Returns all sources: files and inline values.
    pub fn sources(&self) -> Box<dyn Iterator<Item = &Source> + '_> {
        match self {
            Self::Pem(source) => Box::new(std::iter::once(source)),
            Self::Keyless(keyless) => Box::new(keyless.sources()),
            Self::Pkcs11(key) => Box::new(key.sources()),
        }
    }
}

/// Never shows key material.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(source) => source.fmt(f),
            Self::Pkcs11(key) => key.fmt(f),
            Self::Keyless(keyless) => {
                let servers: Vec<String> = keyless.servers.iter().map(ToString::to_string).collect();
                write!(f, "keyless at {}", servers.join(", "))
            }
        }
    }
}
