//! ML-KEM-768 (FIPS 203): a secret encapsulated for a client's public key, by AWS-LC, whose implementation (mlkem-native) is
//! verified, and takes half the time of BoringSSL's.

use super::share::{ML_KEM_CIPHERTEXT, ML_KEM_PUBLIC_KEY};
use aws_lc_sys as ffi;
use std::ptr;
use zeroize::Zeroizing;

/// As metrics name it.
pub(crate) const BACKEND: &str = "aws-lc";

pub(crate) struct Encapsulated {
    pub(crate) ciphertext: [u8; ML_KEM_CIPHERTEXT],
    pub(crate) secret: Zeroizing<[u8; 32]>,
}

/// `None` if the key is not one: a coefficient is not reduced (FIPS 203 section 7.2).
pub(crate) fn encapsulate(encoded: &[u8; ML_KEM_PUBLIC_KEY]) -> Option<Box<Encapsulated>> {
    let mut result =
        Box::new(Encapsulated { ciphertext: [0; ML_KEM_CIPHERTEXT], secret: Zeroizing::new([0; 32]) });
    let (mut ciphertext_len, mut secret_len) = (result.ciphertext.len(), result.secret.len());
    let context = Context::new(encoded)?;
    // SAFETY: the context is live, and both outputs are as long as said.
    let ok = unsafe {
        ffi::EVP_PKEY_encapsulate(
            context.0,
            result.ciphertext.as_mut_ptr(),
            &raw mut ciphertext_len,
            result.secret.as_mut_ptr(),
            &raw mut secret_len,
        )
    };
    let complete = ok == 1 && (ciphertext_len, secret_len) == (result.ciphertext.len(), result.secret.len());
    complete.then_some(result)
}

/// One operation with one public key.
struct Context(*mut ffi::EVP_PKEY_CTX);

impl Context {
    fn new(encoded: &[u8; ML_KEM_PUBLIC_KEY]) -> Option<Self> {
        // SAFETY: the encoded key is readable for its length. The context holds a reference to the key of its own.
        let context = unsafe {
            let key =
                ffi::EVP_PKEY_kem_new_raw_public_key(ffi::NID_MLKEM768, encoded.as_ptr(), encoded.len());
            let context =
                if key.is_null() { ptr::null_mut() } else { ffi::EVP_PKEY_CTX_new(key, ptr::null_mut()) };
            ffi::EVP_PKEY_free(key);
            context
        };
        (!context.is_null()).then_some(Self(context))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the context is live and not used again. What went wrong must not stay in the thread's queue.
        unsafe {
            ffi::EVP_PKEY_CTX_free(self.0);
            ffi::ERR_clear_error();
        }
    }
}
