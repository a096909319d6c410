//! What key exchange is made of: shares, X25519 (RFC 7748), ML-KEM-768 (FIPS 203), and what is told of them.

pub(crate) mod ml_kem;
mod report;
mod share;
mod x25519;

pub use report::{ExchangeOperation, ExchangeReport};
pub use share::{ClientShare, Group, ServerShare};
pub(crate) use x25519::{KeyPair, Scalar, is_contributory};
pub use x25519::{SecretOperation, X25519};
