//! ML-DSA by AWS-LC, for CPUs without lanes.
//!
//! Its code is several times faster than the kernels' plain arithmetic and than BoringSSL's
//! (docs/kernels/measurements.md). Signatures are hedged (FIPS 204 section 3.4), and not verified.

use crate::aws_lc::forget_errors;
use aws_lc_sys as ffi;
use quadrille_kernels::MlDsa;
use std::ptr::{self, NonNull};
use zeroize::Zeroizing;

/// Private key in AWS-LC's form, which wipes it on drop.
pub(super) struct LibraryKey {
    set: MlDsa,
    pkey: NonNull<ffi::EVP_PKEY>,
}

// SAFETY: AWS-LC reads a key to sign, and counts references to it in an atomic.
unsafe impl Send for LibraryKey {}
// SAFETY: as above.
unsafe impl Sync for LibraryKey {}

impl LibraryKey {
    /// `encoded` is a seed or an expanded key; `None` if AWS-LC does not accept it.
    pub(super) fn new(set: MlDsa, encoded: &[u8]) -> Option<Self> {
        let id = match set {
            MlDsa::MlDsa44 => ffi::NID_MLDSA44,
            MlDsa::MlDsa65 => ffi::NID_MLDSA65,
            MlDsa::MlDsa87 => ffi::NID_MLDSA87,
        };
        // SAFETY: the bytes are readable for their length.
        let pkey = unsafe { ffi::EVP_PKEY_pqdsa_new_raw_private_key(id, encoded.as_ptr(), encoded.len()) };
        NonNull::new(pkey).map(|pkey| Self { set, pkey }).or_else(forget_errors)
    }

    /// Returns the expanded key (FIPS 204, algorithm 24).
    pub(super) fn expanded(&self) -> Option<Zeroizing<Vec<u8>>> {
        let mut expanded = Zeroizing::new(vec![0; self.set.private_key_bytes()]);
        let mut length = expanded.len();
        // SAFETY: the key is live, and the buffer has the length that is passed.
        let ok = unsafe {
            ffi::EVP_PKEY_get_raw_private_key(self.pkey.as_ptr(), expanded.as_mut_ptr(), &raw mut length)
        };
        if ok == 1 && length == expanded.len() { Some(expanded) } else { forget_errors() }
    }

    /// Signs a message with an empty context.
    pub(super) fn sign(&self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut signature = Zeroizing::new(vec![0; self.set.signature_bytes()]);
        let mut length = signature.len();
        // SAFETY: the key is live, message and signature are readable and writable for the lengths that are passed, and
        // the context is freed.
        let ok = unsafe {
            let context = ffi::EVP_MD_CTX_new();
            let ok = !context.is_null()
                && ffi::EVP_DigestSignInit(
                    context,
                    ptr::null_mut(),
                    ptr::null(),
                    ptr::null_mut(),
                    self.pkey.as_ptr(),
                ) == 1
                && ffi::EVP_DigestSign(
                    context,
                    signature.as_mut_ptr(),
                    &raw mut length,
                    message.as_ptr(),
                    message.len(),
                ) == 1;
            ffi::EVP_MD_CTX_free(context);
            ok
        };
        if ok && length == signature.len() { Some(signature) } else { forget_errors() }
    }
}

impl Drop for LibraryKey {
    fn drop(&mut self) {
        // SAFETY: the key has no other owner.
        unsafe { ffi::EVP_PKEY_free(self.pkey.as_ptr()) };
    }
}
