//! Field encryption: personal data that is stored encrypted in a database and decrypted on every page.
//!
//! ```
//! use quadrille_field::KeyRing;
//!
//! let ring = KeyRing::generate()?;
//! let phone = ring.field("users", "phone")?;
//! let envelope = phone.encrypt(b"+49 30 1234567", b"42")?;
//! assert_eq!(phone.decrypt(&envelope, b"42")?, b"+49 30 1234567");
//! assert!(phone.decrypt(&envelope, b"43").is_err(), "an envelope belongs to its row");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```text
//! key ring file ── KeyRing ── HKDF for table and column ──> Field ── XAES-256-GCM ──> envelope
//!   active            │                                       └───── HMAC-SHA256 ──> blind index
//!   decrypt-only      └── needs_rotation, rotate: from an older key to the active one
//!   retired
//! ```
//!
//! - [`KeyRing`]: the keys of a file, with their states.
//! - [`Field`]: encrypts, decrypts and indexes one column.
//! - [`envelope`]: the format of encrypted fields in the database.
//! - [`Legacy`]: the legacy AES-256-CBC format, for migration.
//! - [`Mcrypt`]: fields encrypted by PHP's mcrypt extension, for migration.
//! - [`xaes`]: the cipher.
//!
//! It is not a database driver, does not parse SQL, and does not protect keys from a reader of the process's memory.

pub mod envelope;
mod error;
mod field;
mod index;
mod keyring;
mod legacy;
mod mcrypt;
mod nonce;
mod random;
pub mod xaes;

pub use error::{Error, KeyRingError};
pub use field::Field;
pub use index::BLIND_INDEX_BITS;
pub use keyring::{KeyId, KeyRing, KeyRingLock, State};
pub use legacy::Legacy;
pub use mcrypt::{Mcrypt, McryptEncoding, McryptForm, McryptMode, McryptPadding, McryptVector};
pub use random::random_key;
