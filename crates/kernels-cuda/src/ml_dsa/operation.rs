//! Operations of a batch.

use super::key::MlDsaDeviceKey;
use std::fmt;

/// Signature in a batch.
pub struct MlDsaOperation<'a> {
    pub(super) key: &'a MlDsaDeviceKey,
    pub(super) mu: &'a [u8; 64],
    pub(super) rho: &'a [u8; 64],
    pub(super) signature: &'a mut [u8],
    pub(super) signed: bool,
}

impl<'a> MlDsaOperation<'a> {
    /// Creates an operation with its message representative, mu, and the seed of its masks, rho' (FIPS 204, algorithm 7,
    /// lines 6 and 7), which the host computes. `signature` has the length of the parameter set's signatures; with another one, the
    /// operation stays unsigned.
    pub fn new(
        key: &'a MlDsaDeviceKey,
        mu: &'a [u8; 64],
        rho: &'a [u8; 64],
        signature: &'a mut [u8],
    ) -> Self {
        Self { key, mu, rho, signature, signed: false }
    }

    /// Returns whether `signature` holds a signature that has passed the device's checks, which does not include its
    /// verification. Otherwise it is unchanged.
    pub fn is_signed(&self) -> bool {
        self.signed
    }
}

impl fmt::Debug for MlDsaOperation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaOperation").field("signed", &self.signed).finish_non_exhaustive()
    }
}
