//! Signatures of ML-DSA (FIPS 204) on the device: parameter sets, keys, operations, and batches of them.

mod key;
mod lane;
mod operation;
mod set;
mod signer;

#[doc(hidden)]
pub use key::constants;
pub use key::{MlDsaDeviceKey, MlDsaKeyNumbers, MlDsaPrivateKey};
pub use operation::MlDsaOperation;
pub use set::MlDsaSet;
pub use signer::MlDsaSigner;
