//! Client side of ML-KEM-768 (FIPS 203): key generation and decapsulation, by AWS-LC. A gateway never needs it; an
//! OpenSSL provider also serves clients.

use super::{
    aws_lc::{Context, Key},
    share::{ML_KEM_CIPHERTEXT, ML_KEM_PRIVATE_KEY, ML_KEM_PUBLIC_KEY},
};
use crate::OperationError;
use aws_lc_sys as ffi;
use zeroize::Zeroizing;

/// Key pair that is used for one secret.
pub struct MlKem768KeyPair {
    /// Public key for the server.
    pub public: Box<[u8; ML_KEM_PUBLIC_KEY]>,
    private: Box<Zeroizing<[u8; ML_KEM_PRIVATE_KEY]>>,
}

impl MlKem768KeyPair {
    /// Generates a fresh key pair.
    ///
    /// # Errors
    /// [`Failed`](OperationError::Failed) without random numbers or memory.
    pub fn generate() -> Result<Self, OperationError> {
        let key = Key::generate().ok_or(OperationError::Failed)?;
        let mut pair = Self {
            public: Box::new([0; ML_KEM_PUBLIC_KEY]),
            private: Box::new(Zeroizing::new([0; ML_KEM_PRIVATE_KEY])),
        };
        let (mut public_len, mut private_len) = (pair.public.len(), pair.private.len());
        // SAFETY: the key is live, and both outputs have the given lengths.
        let ok = unsafe {
            ffi::EVP_PKEY_get_raw_public_key(key.as_ptr(), pair.public.as_mut_ptr(), &raw mut public_len) == 1
                && ffi::EVP_PKEY_get_raw_private_key(
                    key.as_ptr(),
                    pair.private.as_mut_ptr(),
                    &raw mut private_len,
                ) == 1
        };
        let whole = (public_len, private_len) == (ML_KEM_PUBLIC_KEY, ML_KEM_PRIVATE_KEY);
        if ok && whole { Ok(pair) } else { Err(OperationError::Failed) }
    }

    /// Decapsulates the secret of a ciphertext. For a ciphertext made for another key, returns an unpredictable
    /// secret (implicit rejection, FIPS 203 section 6.3).
    ///
    /// # Errors
    /// [`Failed`](OperationError::Failed) without memory.
    pub fn decapsulate(
        &self,
        ciphertext: &[u8; ML_KEM_CIPHERTEXT],
    ) -> Result<Zeroizing<[u8; 32]>, OperationError> {
        let key = Key::private(&self.private);
        let context = key.as_ref().and_then(Context::with).ok_or(OperationError::Failed)?;
        let mut secret = Zeroizing::new([0; 32]);
        let mut len = secret.len();
        // SAFETY: the context is live; the output and the ciphertext have the given lengths.
        let ok = unsafe {
            ffi::EVP_PKEY_decapsulate(
                context.as_ptr(),
                secret.as_mut_ptr(),
                &raw mut len,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        };
        if ok == 1 && len == secret.len() { Ok(secret) } else { Err(OperationError::Failed) }
    }
}
