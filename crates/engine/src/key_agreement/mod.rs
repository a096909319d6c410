//! Building blocks of key exchange: shares, X25519 (RFC 7748), P-256 (SP 800-56A), ML-KEM-768 (FIPS 203), and
//! reports.

mod aws_lc;
mod ml_kem;
mod ml_kem_client;
mod p256;
mod report;
mod share;
pub mod x25519;

pub(crate) use ml_kem::Encapsulated;
pub use ml_kem::{EncapsulateOperation, MlKem768};
pub use ml_kem_client::MlKem768KeyPair;
pub use p256::{P256, P256KeyPair, P256SecretOperation};
pub use report::{ExchangeOperation, ExchangeReport};
pub use share::{ClientShare, Group, ServerShare};
pub(crate) use x25519::{KeyPair, Scalar, is_contributory};
pub use x25519::{KeyPair as X25519KeyPair, SecretOperation, X25519};
