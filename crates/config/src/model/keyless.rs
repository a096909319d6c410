//! Private keys on other machines.

use super::{Place, Source};
use crate::model::key_server::{Address, Protocol};
use std::{fmt, time::Duration};

/// Where a certificate's private key is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeySource {
    /// Here. PEM: PKCS#8, PKCS#1 or SEC1, not encrypted.
    Pem(Source),
    /// On key servers.
    Keyless(Box<Keyless>),
}

/// Key servers, and how they are asked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Keyless {
    /// All should hold the same keys.
    pub servers: Vec<Address>,
    /// With what the gateway shows who it is, and whom it believes; needed for servers over TCP.
    pub tls: Option<KeylessTls>,
    /// Which mode of the protocol is spoken.
    pub protocol: Protocol,
    /// Pad frames of our own mode.
    pub padding: bool,
    /// An operation without a result after this time has failed.
    pub timeout: Duration,
    /// Ask a second server when an operation takes longer than usual.
    pub hedge: bool,
    /// Which operations the servers are asked for.
    pub usage: KeyServerUse,
    /// The private key, PEM, for what the servers are not asked for and do not answer.
    pub fallback: Option<Source>,
}

/// Which operations key servers are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum KeyServerUse {
    /// All.
    #[default]
    Always,
    /// Those that would wait too long here.
    Overflow,
}

/// Mutual TLS towards key servers. All in PEM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeylessTls {
    /// The CAs that the servers' certificates must lead to.
    pub ca: (Source, Place),
    /// The gateway's own certificate, leaf first.
    pub certificate: (Source, Place),
    /// Its key.
    pub key: (Source, Place),
}

impl Keyless {
    /// These servers, and otherwise what holds when nothing is said.
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

    /// Everything that is read from files or given in place.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let tls = self.tls.iter().flat_map(|tls| [&tls.ca.0, &tls.certificate.0, &tls.key.0]);
        tls.chain(&self.fallback)
    }
}

impl KeySource {
    /// Everything that is read from files or given in place.
    pub fn sources(&self) -> Box<dyn Iterator<Item = &Source> + '_> {
        match self {
            Self::Pem(source) => Box::new(std::iter::once(source)),
            Self::Keyless(keyless) => Box::new(keyless.sources()),
        }
    }
}

/// Never shows key material.
impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pem(source) => source.fmt(f),
            Self::Keyless(keyless) => {
                let servers: Vec<String> = keyless.servers.iter().map(ToString::to_string).collect();
                write!(f, "keyless at {}", servers.join(", "))
            }
        }
    }
}
