//! ML-KEM-768 (FIPS 203) on the client's side: key pairs, and secrets out of ciphertexts, by AWS-LC. A gateway never needs
//! it; a provider of OpenSSL has clients among its users, too.

use super::share::{ML_KEM_CIPHERTEXT, ML_KEM_PRIVATE_KEY, ML_KEM_PUBLIC_KEY};
use crate::OperationError;
use aws_lc_sys as ffi;
use std::ptr;
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
        let _errors = ErrorsCleared;
        let context = Context::for_generation().ok_or(OperationError::Failed)?;
        let mut key = ptr::null_mut();
        // SAFETY: the context is live; the key is written if it succeeds.
        if unsafe { ffi::EVP_PKEY_keygen(context.0, &raw mut key) } != 1 {
            return Err(OperationError::Failed);
        }
        let key = Key(key);
        let mut pair = Self {
            public: Box::new([0; ML_KEM_PUBLIC_KEY]),
            private: Box::new(Zeroizing::new([0; ML_KEM_PRIVATE_KEY])),
        };
        let (mut public_len, mut private_len) = (pair.public.len(), pair.private.len());
        // SAFETY: the key is live, and both outputs are as long as said.
        let ok = unsafe {
            ffi::EVP_PKEY_get_raw_public_key(key.0, pair.public.as_mut_ptr(), &raw mut public_len) == 1
                && ffi::EVP_PKEY_get_raw_private_key(key.0, pair.private.as_mut_ptr(), &raw mut private_len)
                    == 1
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
        let _errors = ErrorsCleared;
        // SAFETY: the private key is readable for its length.
        let key = Key(unsafe {
            ffi::EVP_PKEY_kem_new_raw_secret_key(ffi::NID_MLKEM768, self.private.as_ptr(), self.private.len())
        });
        let context = Context::with(&key).ok_or(OperationError::Failed)?;
        let mut secret = Zeroizing::new([0; 32]);
        let mut len = secret.len();
        // SAFETY: the context is live; the output is as long as said, and so is the ciphertext.
        let ok = unsafe {
            ffi::EVP_PKEY_decapsulate(
                context.0,
                secret.as_mut_ptr(),
                &raw mut len,
                ciphertext.as_ptr(),
                ciphertext.len(),
            )
        };
        if ok == 1 && len == secret.len() { Ok(secret) } else { Err(OperationError::Failed) }
    }
}

/// What went wrong must not stay in the thread's queue of errors.
struct ErrorsCleared;

impl Drop for ErrorsCleared {
    fn drop(&mut self) {
        // SAFETY: it has no preconditions.
        unsafe { ffi::ERR_clear_error() };
    }
}

/// A key, or null.
struct Key(*mut ffi::EVP_PKEY);

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: it is null, or a reference of our own.
        unsafe { ffi::EVP_PKEY_free(self.0) };
    }
}

struct Context(*mut ffi::EVP_PKEY_CTX);

impl Context {
    fn for_generation() -> Option<Self> {
        // SAFETY: these have no preconditions.
        let context = Self(unsafe { ffi::EVP_PKEY_CTX_new_id(ffi::EVP_PKEY_KEM, ptr::null_mut()) });
        // SAFETY: the context is live.
        let ready = !context.0.is_null()
            && unsafe {
                ffi::EVP_PKEY_CTX_kem_set_params(context.0, ffi::NID_MLKEM768) == 1
                    && ffi::EVP_PKEY_keygen_init(context.0) == 1
            };
        ready.then_some(context)
    }

    fn with(key: &Key) -> Option<Self> {
        if key.0.is_null() {
            return None;
        }
        // SAFETY: a live key; the context holds a reference of its own.
        let context = unsafe { ffi::EVP_PKEY_CTX_new(key.0, ptr::null_mut()) };
        (!context.is_null()).then_some(Self(context))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is null, or live and not used again.
        unsafe { ffi::EVP_PKEY_CTX_free(self.0) };
    }
}
