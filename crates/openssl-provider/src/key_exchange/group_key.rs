//! What all groups' keys have in common.

use crate::error::Failure;
use std::ffi::CStr;

/// A key of one group. It is empty when it stands for the group alone.
pub(super) trait GroupKey: Default + 'static {
    /// As OpenSSL names the group and its algorithms.
    const NAME: &'static CStr;
    const BITS: usize;
    const SECURITY_BITS: usize;
    /// Bytes of the longest thing that the algorithm gives out.
    const MAX_SIZE: usize;

    /// A key pair that nobody else has.
    fn generate() -> Result<Self, Failure>;

    /// From a private key or a public one, or both, which must belong together.
    fn from_parts(private: Option<&[u8]>, public: Option<&[u8]>) -> Result<Self, Failure>;

    /// The peer's public key, as TLS has it.
    fn set_public(&mut self, public: &[u8]) -> Result<(), Failure>;

    fn public(&self) -> Option<&[u8]>;

    /// The private key, as it is exported.
    fn private(&self) -> Option<&[u8]>;

    /// Whether there is a private key, which may not be one that is exported.
    fn has_private(&self) -> bool {
        self.private().is_some()
    }
}
