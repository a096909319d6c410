//! ML-KEM-768 (FIPS 203): who encapsulates secrets for clients' public keys.

use super::{
    Scalar,
    aws_lc::{Context, Key},
    share::{ML_KEM_CIPHERTEXT, ML_KEM_PUBLIC_KEY},
};
use crate::Batching;
use aws_lc_sys as ffi;
use zeroize::Zeroizing;

/// Encapsulates for several connections at once.
pub trait MlKem768: Send + Sync + 'static {
    /// As logs and metrics name it.
    fn name(&self) -> &'static str;

    /// How many operations one pass computes. Does not change.
    fn width(&self) -> usize;

    /// From how many operations on a pass is cheaper than as many scalar ones, which smaller batches get. Does not
    /// change.
    fn crossover(&self) -> usize;

    /// Width and crossover.
    fn batching(&self) -> Batching {
        Batching::new(self.width(), self.crossover())
    }

    /// Computes whole passes, and one in part. An operation whose result is not
    /// [`complete`](EncapsulateOperation::complete) afterwards has a key that is none: a coefficient is not reduced
    /// (FIPS 203 section 7.2).
    fn encapsulate(&self, operations: &mut [EncapsulateOperation<'_>]);
}

/// A secret to be encapsulated, with random numbers that only the operation itself knows.
pub struct EncapsulateOperation<'a> {
    /// The client's public key, as it has sent it.
    pub key: &'a [u8; ML_KEM_PUBLIC_KEY],
    /// The first part of the result.
    pub ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT],
    /// The other part.
    pub secret: &'a mut [u8; 32],
    /// Whether ciphertext and secret are there; `false` before.
    pub complete: bool,
}

/// What was encapsulated for a client.
#[derive(Clone)]
pub(crate) struct Encapsulated {
    pub(crate) ciphertext: [u8; ML_KEM_CIPHERTEXT],
    pub(crate) secret: Zeroizing<[u8; 32]>,
}

impl Default for Encapsulated {
    fn default() -> Self {
        Self { ciphertext: [0; ML_KEM_CIPHERTEXT], secret: Zeroizing::default() }
    }
}

impl Encapsulated {
    /// The operation that gives this result.
    pub(crate) fn operation<'a>(&'a mut self, key: &'a [u8; ML_KEM_PUBLIC_KEY]) -> EncapsulateOperation<'a> {
        let Self { ciphertext, secret } = self;
        EncapsulateOperation { key, ciphertext, secret, complete: false }
    }
}

/// AWS-LC, one operation after the other: its implementation (mlkem-native) is verified, and takes half the time of
/// BoringSSL's.
impl MlKem768 for Scalar {
    fn name(&self) -> &'static str {
        "aws-lc"
    }

    fn width(&self) -> usize {
        1
    }

    fn crossover(&self) -> usize {
        1
    }

    fn encapsulate(&self, operations: &mut [EncapsulateOperation<'_>]) {
        for EncapsulateOperation { key, ciphertext, secret, complete } in operations {
            let Some(context) = Key::public(key).as_ref().and_then(Context::with) else { continue };
            let (mut ciphertext_len, mut secret_len) = (ciphertext.len(), secret.len());
            // SAFETY: the context is live, and both outputs are as long as said.
            let ok = unsafe {
                ffi::EVP_PKEY_encapsulate(
                    context.as_ptr(),
                    ciphertext.as_mut_ptr(),
                    &raw mut ciphertext_len,
                    secret.as_mut_ptr(),
                    &raw mut secret_len,
                )
            };
            *complete = ok == 1 && (ciphertext_len, secret_len) == (ciphertext.len(), secret.len());
        }
    }
}
