//! What the engine tells of key exchange.

use std::{fmt, time::Duration};

/// One of the operations that key exchange is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeOperation {
    /// A shared secret from the client's share.
    X25519,
    /// A key pair of the server's.
    X25519KeyPair,
    /// A shared secret on P-256 from the client's share.
    P256,
    /// A key pair of the server's on P-256.
    P256KeyPair,
    /// A secret encapsulated for the client's public key, which is parsed first.
    MlKem768,
}

impl ExchangeOperation {
    /// Whether it is done before anybody needs it.
    pub fn is_made_ahead(self) -> bool {
        matches!(self, Self::X25519KeyPair | Self::P256KeyPair)
    }
}

/// As metrics and logs name it: `x25519`, `x25519-key-pair`, `p256`, `p256-key-pair`, `ml-kem-768`.
impl fmt::Display for ExchangeOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X25519 => "x25519",
            Self::X25519KeyPair => "x25519-key-pair",
            Self::P256 => "p256",
            Self::P256KeyPair => "p256-key-pair",
            Self::MlKem768 => "ml-kem-768",
        })
    }
}

/// What became of operations that were computed together.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeReport {
    /// Which operation.
    pub operation: ExchangeOperation,
    /// Who computed it.
    pub backend: &'static str,
    /// How many.
    pub operations: usize,
    /// How many of them the client's share did not allow.
    pub failed: usize,
    /// How long the first of them had waited; zero for key pairs, which nobody waits for.
    pub waited: Duration,
    /// How long all of them took.
    pub computed: Duration,
}
