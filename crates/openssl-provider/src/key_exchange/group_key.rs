//! Interface common to the keys of all groups.

use crate::error::Failure;
use std::ffi::CStr;

/// A key of one group. It is empty when it represents only the group.
pub(super) trait GroupKey: Default + 'static {
    /// OpenSSL's name of the group and its algorithms.
    const NAME: &'static CStr;
    const BITS: usize;
    const SECURITY_BITS: usize;
    /// Maximum number of bytes in the algorithm's outputs.
    const MAX_SIZE: usize;

    /// Generates a key pair.
    fn generate() -> Result<Self, Failure>;

    /// Creates a key from a private key, a public key, or both, which must match.
    fn from_parts(private: Option<&[u8]>, public: Option<&[u8]>) -> Result<Self, Failure>;

    /// Sets the peer's public key, in its TLS encoding.
    fn set_public(&mut self, public: &[u8]) -> Result<(), Failure>;

    fn public(&self) -> Option<&[u8]>;

    /// Returns the private key for export.
    fn private(&self) -> Option<&[u8]>;

    /// Returns whether there is a private key, which may not be exportable.
    fn has_private(&self) -> bool {
        self.private().is_some()
    }
}
