//! ML-KEM-768 (FIPS 203) encapsulation for clients' public keys.

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
    /// Name in logs and metrics.
    fn name(&self) -> &'static str;

    /// Number of operations that one pass computes. Does not change.
    fn width(&self) -> usize;

    /// Smallest batch for which a pass is cheaper than scalar operations, which compute smaller batches. Does not
    /// change.
    fn crossover(&self) -> usize;

    /// Width and crossover.
    fn batching(&self) -> Batching {
        Batching::new(self.width(), self.crossover())
    }

    /// Computes whole passes, and one partial pass. If an operation is not
    /// [`complete`](EncapsulateOperation::complete) afterwards, its key is invalid: a coefficient is not reduced
    /// (FIPS 203 section 7.2).
    fn encapsulate(&self, operations: &mut [EncapsulateOperation<'_>]);
}

/// Encapsulation to compute, with random numbers that are internal to the operation.
pub struct EncapsulateOperation<'a> {
    /// Public key sent by the client.
    pub key: &'a [u8; ML_KEM_PUBLIC_KEY],
    /// Ciphertext output.
    pub ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT],
    /// Shared secret output.
    pub secret: &'a mut [u8; 32],
    /// Whether ciphertext and secret are computed; initially `false`.
    pub complete: bool,
}

/// Result of an encapsulation for a client.
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
    /// Returns the operation that fills this result.
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
            // SAFETY: the context is live, and both outputs have the given lengths.
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
