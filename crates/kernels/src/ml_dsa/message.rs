//! Operations of batches.

use super::key::{MlDsaKey, MlDsaPublicKey};
use super::parameters::MlDsa;
use std::fmt;

/// Longest context in bytes.
const MAX_CONTEXT: usize = 255;

/// Message to sign or to verify.
#[derive(Clone, Copy)]
pub enum MlDsaMessage<'a> {
    /// Message with a context of at most 255 bytes, which is empty in TLS and X.509 (pure ML-DSA; FIPS 204, algorithm
    /// 2).
    Pure {
        /// Message.
        message: &'a [u8],
        /// Context.
        context: &'a [u8],
    },
    /// Message representative mu, which was computed elsewhere (FIPS 204, algorithm 7, line 6).
    Representative(&'a [u8; 64]),
    /// Formatted message M' (FIPS 204, algorithm 7).
    Formatted(&'a [u8]),
}

impl MlDsaMessage<'_> {
    fn is_valid(&self) -> bool {
        !matches!(self, Self::Pure { context, .. } if context.len() > MAX_CONTEXT)
    }

    /// Returns the representative, or the input of its hash.
    pub(super) fn input(&self, key: &MlDsaPublicKey) -> Result<[u8; 64], Vec<u8>> {
        match self {
            Self::Pure { message, context } => {
                Err([&key.tr, &[0, context.len() as u8][..], context, message].concat())
            }
            Self::Formatted(message) => Err([&key.tr, *message].concat()),
            Self::Representative(mu) => Ok(**mu),
        }
    }
}

/// Signature in a batch.
pub struct MlDsaSignature<'a> {
    pub(super) key: &'a MlDsaKey,
    pub(super) message: MlDsaMessage<'a>,
    pub(super) signature: &'a mut [u8],
    pub(super) signed: bool,
}

impl<'a> MlDsaSignature<'a> {
    /// Creates an operation for [`Lanes::sign_ml_dsa`](crate::Lanes::sign_ml_dsa), which stores the signature.
    /// `signature` has the parameter set's length; with another one, or with a context that is too long, the message
    /// stays unsigned.
    pub fn new(key: &'a MlDsaKey, message: MlDsaMessage<'a>, signature: &'a mut [u8]) -> Self {
        Self { key, message, signature, signed: false }
    }

    /// Returns whether `signature` holds a signature that has passed its checks. Otherwise it is unchanged.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    pub(super) fn is_message_valid(&self) -> bool {
        self.message.is_valid()
    }

    /// Returns whether the operation is of the parameter set and valid.
    pub(super) fn is_possible(&self, set: MlDsa) -> bool {
        self.key.public.set == set && self.signature.len() == set.signature_bytes() && self.message.is_valid()
    }
}

/// Verification in a batch.
pub struct MlDsaVerification<'a> {
    pub(super) key: &'a MlDsaPublicKey,
    pub(super) message: MlDsaMessage<'a>,
    pub(super) signature: &'a [u8],
    pub(super) valid: bool,
}

impl<'a> MlDsaVerification<'a> {
    /// Creates an operation for [`Lanes::verify_ml_dsa`](crate::Lanes::verify_ml_dsa).
    pub fn new(key: &'a MlDsaPublicKey, message: MlDsaMessage<'a>, signature: &'a [u8]) -> Self {
        Self { key, message, signature, valid: false }
    }

    /// Returns whether the signature was verified, and is valid.
    pub fn is_valid(&self) -> bool {
        self.valid
    }

    /// Returns whether the operation is of the parameter set, and may be valid.
    pub(super) fn is_possible(&self, set: MlDsa) -> bool {
        self.key.set == set && self.signature.len() == set.signature_bytes() && self.message.is_valid()
    }
}

impl fmt::Debug for MlDsaSignature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaSignature").field("signed", &self.signed).finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaVerification<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaVerification").field("valid", &self.valid).finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaMessage<'_> {
    /// Does not show the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaMessage").finish_non_exhaustive()
    }
}
