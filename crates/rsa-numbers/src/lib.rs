//! The numbers of RSA keys and operations, in the form that every kernel wants: their size known, as words, checked.
//!
//! ```text
//!  Components (big-endian bytes) ──> Numbers (words of a known KeySize) ──┐
//!  PrivateOperation (key, input, output): as long as the modulus, below it ┴──> quadrille-kernels, quadrille-kernels-cuda
//! ```
//!
//! It computes nothing fast and knows no CPU, no device and no cryptographic library: what it shares is what must not
//! differ between the kernels.

mod input;
mod key_size;
mod numbers;
mod operation;
pub mod words;

pub use input::{InputError, Modulus};
pub use key_size::KeySize;
pub use numbers::{Components, KeyError, Numbers};
pub use operation::{PrivateOperation, PrivateOperationError, RsaKey};
