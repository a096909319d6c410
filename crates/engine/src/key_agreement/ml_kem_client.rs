//! ML-KEM-768 (FIPS 203) on the client's side: key pairs, and secrets out of ciphertexts, by AWS-LC. A gateway never needs
//! it; a provider of OpenSSL has clients among its users, too.

use super::{
    aws_lc::{Context, Key},
    share::{ML_KEM_CIPHERTEXT, ML_KEM_PRIVATE_KEY, ML_KEM_PUBLIC_KEY},
};
use crate::OperationError;
use aws_lc_sys as ffi;
use zeroize::Zeroizing;

/// A key pair that is used for one secret.
pub struct MlKem768KeyPair {
    /// What is sent to the server.
    pub public: Box<[u8; ML_KEM_PUBLIC_KEY]>,
    private: Box<Zeroizing<[u8; ML_KEM_PRIVATE_KEY]>>,
}

impl MlKem768KeyPair {
    /// A key pair that nobody else has.
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
        // SAFETY: the key is live, and both outputs are as long as said.
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

    /// The secret that a ciphertext has for this key; for one that was not made for it, a secret that nobody else has (FIPS
    /// 203 section 6.3).
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
        // SAFETY: the context is live; the output is as long as said, and so is the ciphertext.
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
