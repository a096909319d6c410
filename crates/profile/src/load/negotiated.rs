//! Parameters negotiated in a handshake.

use boring::ssl::SslRef;
use std::fmt;

/// Negotiated parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Negotiated {
    /// Protocol version.
    pub version: &'static str,
    /// Cipher suite.
    pub cipher: &'static str,
    /// Key exchange group.
    pub group: &'static str,
    /// Scheme of the server's signature.
    pub signature: &'static str,
}

impl Negotiated {
    pub(super) fn from_ssl(ssl: &SslRef) -> Self {
        Self {
            version: ssl.version_str(),
            cipher: ssl.current_cipher().map_or("none", |cipher| cipher.name()),
            group: ssl.curve_name().unwrap_or("none"),
            signature: ssl
                .peer_signature_algorithm()
                .and_then(|algorithm| algorithm.name())
                .unwrap_or("none"),
        }
    }
}

impl fmt::Display for Negotiated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, cipher, group, signature } = self;
        write!(f, "{version} {cipher} {group} {signature}")
    }
}
