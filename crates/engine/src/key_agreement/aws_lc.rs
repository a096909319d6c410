//! AWS-LC's objects for ML-KEM-768. Each is freed on drop, and errors do not stay in the thread's error queue.

use super::share::{ML_KEM_PRIVATE_KEY, ML_KEM_PUBLIC_KEY};
use aws_lc_sys as ffi;
use std::ptr;

/// Owned `EVP_PKEY`.
pub(super) struct Key(*mut ffi::EVP_PKEY);

/// Owned `EVP_PKEY_CTX` of one key.
pub(super) struct Context(*mut ffi::EVP_PKEY_CTX);

impl Key {
    pub(super) fn public(encoded: &[u8; ML_KEM_PUBLIC_KEY]) -> Option<Self> {
        // SAFETY: the encoded key is readable for its length.
        Self::owned(unsafe {
            ffi::EVP_PKEY_kem_new_raw_public_key(ffi::NID_MLKEM768, encoded.as_ptr(), encoded.len())
        })
    }

    pub(super) fn private(encoded: &[u8; ML_KEM_PRIVATE_KEY]) -> Option<Self> {
        // SAFETY: as above.
        Self::owned(unsafe {
            ffi::EVP_PKEY_kem_new_raw_secret_key(ffi::NID_MLKEM768, encoded.as_ptr(), encoded.len())
        })
    }

    /// Generates a fresh key pair.
    pub(super) fn generate() -> Option<Self> {
        // SAFETY: no preconditions.
        let context =
            Context::owned(unsafe { ffi::EVP_PKEY_CTX_new_id(ffi::EVP_PKEY_KEM, ptr::null_mut()) })?;
        let mut key = ptr::null_mut();
        // SAFETY: the context is live; the key is written if it succeeds.
        unsafe {
            let _ = ffi::EVP_PKEY_CTX_kem_set_params(context.0, ffi::NID_MLKEM768) == 1
                && ffi::EVP_PKEY_keygen_init(context.0) == 1
                && ffi::EVP_PKEY_keygen(context.0, &raw mut key) == 1;
        }
        Self::owned(key)
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::EVP_PKEY {
        self.0
    }

    /// Takes ownership of `key`, which is null, or a reference with no other owner.
    fn owned(key: *mut ffi::EVP_PKEY) -> Option<Self> {
        let owned = Self(key);
        (!key.is_null()).then_some(owned)
    }
}

impl Context {
    pub(super) fn with(key: &Key) -> Option<Self> {
        // SAFETY: the key is live; the context holds a reference of its own.
        Self::owned(unsafe { ffi::EVP_PKEY_CTX_new(key.0, ptr::null_mut()) })
    }

    pub(super) fn as_ptr(&self) -> *mut ffi::EVP_PKEY_CTX {
        self.0
    }

    /// Takes ownership of `context`, which is null, or has no other owner.
    fn owned(context: *mut ffi::EVP_PKEY_CTX) -> Option<Self> {
        let owned = Self(context);
        (!context.is_null()).then_some(owned)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        // SAFETY: it is null, or a reference of our own that is not used again.
        unsafe {
            ffi::EVP_PKEY_free(self.0);
            ffi::ERR_clear_error();
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: it is null, or live and not used again.
        unsafe {
            ffi::EVP_PKEY_CTX_free(self.0);
            ffi::ERR_clear_error();
        }
    }
}
