//! Numbers of RSA keys and operations, in the form used by all kernels: of known size, as words, checked.
//!
//! ```text
//!  Components (big-endian bytes) ──> Numbers (words of a known KeySize) ──┐
//!  PrivateOperation (key, input, output): as long as the modulus, below it ┴──> quadrille-kernels, quadrille-kernels-cuda
//! ```
//!
//! It has no fast arithmetic and no dependency on a CPU, a device or a cryptographic library: it contains only the
//! code that must not differ between the kernels.

mod input;
mod key_size;
mod numbers;
mod operation;
pub mod words;

pub use input::{InputError, Modulus};
pub use key_size::KeySize;
pub use numbers::{Components, KeyError, Numbers};
pub use operation::{PrivateOperation, PrivateOperationError, RsaKey};
