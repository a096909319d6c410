//! Kinds of handshakes.

use serde::Serialize;
use std::fmt;

/// A kind of handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct HandshakeKind {
    /// Certificate and key exchange.
    pub suite: Suite,
    /// Whether the version is TLS 1.3; otherwise TLS 1.2.
    pub tls13: bool,
    /// Whether the handshake is abbreviated, with a ticket.
    pub resumed: bool,
}

/// The side whose cost is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The side with the private key.
    Server,
    /// The side that verifies.
    Client,
}

/// Certificate and key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Suite {
    /// RSA-2048 certificate, X25519.
    EcdheRsa,
    /// P-256 certificate, X25519.
    EcdheEcdsa,
    /// RSA-2048 certificate and RSA key exchange (RFC 5246 section 7.4.7.1), without forward secrecy; TLS 1.2 only.
    Rsa,
}

impl HandshakeKind {
    /// Returns every kind that is measured.
    pub fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for (tls13, suites) in [
            (false, &[Suite::EcdheRsa, Suite::EcdheEcdsa, Suite::Rsa][..]),
            (true, &[Suite::EcdheRsa, Suite::EcdheEcdsa]),
        ] {
            for &suite in suites {
                all.extend([false, true].map(|resumed| Self { suite, tls13, resumed }));
            }
        }
        all
    }

    /// Returns version, key exchange and key; the name is equal for full and resumed handshakes.
    pub fn name(self) -> String {
        let version = if self.tls13 { "TLS 1.3" } else { "TLS 1.2" };
        let suite = match self.suite {
            Suite::EcdheRsa => "ECDHE_RSA, RSA-2048, X25519",
            Suite::EcdheEcdsa => "ECDHE_ECDSA, P-256, X25519",
            Suite::Rsa => "RSA key exchange, RSA-2048",
        };
        format!("{version} {suite}")
    }
}

impl fmt::Display for HandshakeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.name(), if self.resumed { "resumed" } else { "full" })
    }
}
