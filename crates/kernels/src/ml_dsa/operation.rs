//! Signatures in progress.

use super::key::MlDsaKey;

/// Signature in progress.
pub(super) struct Operation<'a> {
    pub(super) key: &'a MlDsaKey,
    /// Message representative.
    pub(super) mu: [u8; 64],
    /// Seed of the masks, rho'.
    pub(super) rho: [u8; 64],
    pub(super) progress: Progress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// No attempt has been accepted yet.
    Open,
    /// An attempt has been accepted; its signature is not yet verified.
    Accepted,
    /// A check has failed.
    Faulty,
}
