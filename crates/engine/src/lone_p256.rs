//! Lone ECDSA signature on P-256, by AWS-LC.
//!
//! Its scalar code is faster than BoringSSL's on every CPU that was measured (docs/kernels/measurements.md). Both
//! libraries release results without verifying them.

use crate::{Key, aws_lc::forget_errors, key::Material};
use aws_lc_sys as ffi;
use boring::{ec::EcKey, pkey::Private};
use std::ptr::{self, NonNull};
use zeroize::Zeroizing;

/// Private key in AWS-LC's form, which wipes it on drop.
pub(crate) struct LoneP256(NonNull<ffi::EC_KEY>);

// SAFETY: AWS-LC reads a key to sign, and counts references to it in an atomic.
unsafe impl Send for LoneP256 {}
// SAFETY: as above.
unsafe impl Sync for LoneP256 {}

/// Signs a digest, returning an `ECDSA-Sig-Value` (RFC 3279, section 2.2.3); `None` if AWS-LC does not accept the
/// key, or fails.
pub(crate) fn sign(key: &Key, digest: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let read = || match key.material() {
        Material::Ec(ec) => LoneP256::new(ec),
        _ => None,
    };
    key.prepared::<Option<LoneP256>>(read).as_ref()?.sign(digest)
}

impl LoneP256 {
    pub(crate) fn new(ec: &EcKey<Private>) -> Option<Self> {
        let der = Zeroizing::new(ec.private_key_to_der().ok()?);
        let mut unread = der.as_ptr();
        let length = der.len().try_into().ok()?;
        // SAFETY: the bytes are readable for their length.
        let key = unsafe { ffi::d2i_ECPrivateKey(ptr::null_mut(), &raw mut unread, length) };
        NonNull::new(key).map(Self).or_else(forget_errors)
    }

    pub(crate) fn sign(&self, digest: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        const NO_TYPE: i32 = 0;
        // SAFETY: the key is live.
        let most = unsafe { ffi::ECDSA_size(self.0.as_ptr()) };
        let mut signature = Zeroizing::new(vec![0; most]);
        let mut length = 0;
        // SAFETY: the digest is readable for its length, and there is room for any signature of this key.
        let ok = unsafe {
            ffi::ECDSA_sign(
                NO_TYPE,
                digest.as_ptr(),
                digest.len(),
                signature.as_mut_ptr(),
                &raw mut length,
                self.0.as_ptr(),
            )
        };
        if ok != 1 {
            return forget_errors();
        }
        signature.truncate(length as usize);
        Some(signature)
    }
}

impl Drop for LoneP256 {
    fn drop(&mut self) {
        // SAFETY: the key has no other owner.
        unsafe { ffi::EC_KEY_free(self.0.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::{LoneP256, ffi};
    use boring::{
        ec::{EcGroup, EcKey},
        ecdsa::EcdsaSig,
        nid::Nid,
    };

    #[test]
    fn boringssl_accepts_the_signatures() {
        let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
        for seed in 0..50_u8 {
            let ec = EcKey::generate(&group).unwrap();
            let lone = LoneP256::new(&ec).expect("AWS-LC accepts the key");
            // Digests of other lengths are truncated as BoringSSL does: SHA-1's, SHA-384's.
            for length in [20, 32, 48] {
                let digest = vec![seed; length];
                let signature = lone.sign(&digest).expect("a signature");
                assert_ne!(signature, lone.sign(&digest).expect("another"), "nonces differ");
                let signature = EcdsaSig::from_der(&signature).unwrap();
                assert!(signature.verify(&digest, &ec).unwrap(), "{seed}, {length} bytes");
                assert!(!signature.verify(&vec![!seed; length], &ec).unwrap());
            }
        }
        // SAFETY: no preconditions.
        assert_eq!(unsafe { ffi::ERR_peek_error() }, 0);
    }
}
