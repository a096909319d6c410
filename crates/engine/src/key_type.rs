//! Key types.

use quadrille_kernels::MlDsa;
use std::fmt;

/// Algorithm and size. Operations of one type share a queue, for all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyType {
    /// RSA with a modulus of this many bits.
    Rsa {
        /// Length of the modulus.
        bits: u32,
    },
    /// ECDSA on P-256 (secp256r1).
    EcdsaP256,
    /// ECDSA on P-384 (secp384r1).
    EcdsaP384,
    /// ECDSA on P-521 (secp521r1).
    EcdsaP521,
    /// Ed25519.
    Ed25519,
    /// ML-DSA with this parameter set (FIPS 204); certificates of TLS 1.3 (RFC 9881).
    MlDsa(MlDsa),
}

impl KeyType {
    /// Key types in common use in certificates.
    pub(crate) const COMMON: [Self; 10] = [
        Self::Rsa { bits: 2048 },
        Self::Rsa { bits: 3072 },
        Self::Rsa { bits: 4096 },
        Self::EcdsaP256,
        Self::EcdsaP384,
        Self::EcdsaP521,
        Self::Ed25519,
        Self::MlDsa(MlDsa::MlDsa44),
        Self::MlDsa(MlDsa::MlDsa65),
        Self::MlDsa(MlDsa::MlDsa87),
    ];
}

/// Name in metrics and logs: `rsa2048`, `ecdsa-p256`, `ed25519`, `mldsa44`.
impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { bits } => write!(f, "rsa{bits}"),
            Self::EcdsaP256 => f.write_str("ecdsa-p256"),
            Self::EcdsaP384 => f.write_str("ecdsa-p384"),
            Self::EcdsaP521 => f.write_str("ecdsa-p521"),
            Self::Ed25519 => f.write_str("ed25519"),
            Self::MlDsa(MlDsa::MlDsa44) => f.write_str("mldsa44"),
            Self::MlDsa(MlDsa::MlDsa65) => f.write_str("mldsa65"),
            Self::MlDsa(MlDsa::MlDsa87) => f.write_str("mldsa87"),
        }
    }
}
