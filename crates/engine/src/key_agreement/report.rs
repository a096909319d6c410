//! Reports of key exchange to the observer.

use std::{fmt, time::Duration};

/// An operation of key exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExchangeOperation {
    /// Shared secret from the client's share.
    X25519,
    /// Key pair of the server.
    X25519KeyPair,
    /// Shared secret on P-256 from the client's share.
    P256,
    /// Key pair of the server on P-256.
    P256KeyPair,
    /// Secret encapsulated for the client's public key, including the parsing of the key.
    MlKem768,
}

impl ExchangeOperation {
    /// Returns whether the operation is computed in advance.
    pub fn is_made_ahead(self) -> bool {
        matches!(self, Self::X25519KeyPair | Self::P256KeyPair)
    }
}

/// Name in metrics and logs: `x25519`, `x25519-key-pair`, `p256`, `p256-key-pair`, `ml-kem-768`.
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

/// Outcome of operations that were computed together.
#[derive(Clone, Copy, Debug)]
pub struct ExchangeReport {
    /// Kind of the operations.
    pub operation: ExchangeOperation,
    /// Name of the backend.
    pub backend: &'static str,
    /// Number of operations.
    pub operations: usize,
    /// Number of operations that failed because of the client's share.
    pub failed: usize,
    /// Time that the first of them waited; zero for key pairs, which are made in advance.
    pub waited: Duration,
    /// Time to compute all of them.
    pub computed: Duration,
}
