//! Lone RSA operation, by AWS-LC.
//!
//! With AVX-512 IFMA AWS-LC computes the two halves of the Chinese remainder theorem (RFC 8017 section 5.1.2) side by
//! side, on half the registers of a pass of lanes: for a single operation, that is the fastest code measured
//! (docs/kernels/measurements.md). It blinds, and raises every result to the public exponent before releasing it.

use crate::{Key, aws_lc::forget_errors, key::Material};
use aws_lc_sys as ffi;
use boring::{pkey::Private, rsa::Rsa};
use std::ptr::NonNull;
use zeroize::Zeroizing;

/// Private key in AWS-LC's form, which wipes it on drop.
pub(super) struct LoneRsa(NonNull<ffi::RSA>);

// SAFETY: AWS-LC's private operations may run on any thread, and on several at once: the mutable parts of a key (its
// blinding, its Montgomery contexts) are protected by the key's own lock.
unsafe impl Send for LoneRsa {}
// SAFETY: as above.
unsafe impl Sync for LoneRsa {}

impl LoneRsa {
    /// `None` if AWS-LC does not accept the key.
    pub(super) fn new(rsa: &Rsa<Private>) -> Option<Self> {
        let der = Zeroizing::new(rsa.private_key_to_der().ok()?);
        // SAFETY: the bytes are readable for their length.
        let key = unsafe { ffi::RSA_private_key_from_bytes(der.as_ptr(), der.len()) };
        NonNull::new(key).map(Self).or_else(forget_errors)
    }

    /// Computes the raw private operation. Input and output have the length of the modulus.
    pub(super) fn compute(&self, input: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let mut output = Zeroizing::new(vec![0; input.len()]);
        let mut written = 0;
        // SAFETY: the key is live; input and output are readable and writable for the lengths that are passed.
        let ok = unsafe {
            ffi::RSA_sign_raw(
                self.0.as_ptr(),
                &raw mut written,
                output.as_mut_ptr(),
                output.len(),
                input.as_ptr(),
                input.len(),
                ffi::RSA_NO_PADDING,
            )
        };
        if ok == 1 && written == output.len() { Some(output) } else { forget_errors() }
    }
}

impl Drop for LoneRsa {
    fn drop(&mut self) {
        // SAFETY: the key has no other owner.
        unsafe { ffi::RSA_free(self.0.as_ptr()) };
    }
}

/// Returns the key in this form, made once; `None` if it is not an RSA key.
pub(super) fn prepared(key: &Key) -> Option<&LoneRsa> {
    let make = || match key.material() {
        Material::Rsa(rsa) => LoneRsa::new(rsa),
        _ => None,
    };
    key.prepared::<Option<LoneRsa>>(make).as_ref()
}

#[cfg(test)]
mod tests {
    use super::LoneRsa;
    use boring::rsa::{Padding, Rsa};

    #[test]
    fn it_agrees_with_boringssl() {
        for bits in [1024, 2048, 3072, 4096] {
            let rsa = Rsa::generate(bits).unwrap();
            let lone = LoneRsa::new(&rsa).expect("AWS-LC accepts the key");
            for seed in 1..20_u8 {
                let mut input = vec![seed.wrapping_mul(41); rsa.size() as usize];
                input[0] = 0;
                let mut expected = vec![0; input.len()];
                rsa.private_encrypt(&input, &mut expected, Padding::NONE).unwrap();
                assert_eq!(*lone.compute(&input).expect("result"), expected, "{bits} bits, {seed}");
            }
        }
    }

    #[test]
    fn an_invalid_operation_is_rejected_and_leaves_no_error_behind() {
        let rsa = Rsa::generate(2048).unwrap();
        let lone = LoneRsa::new(&rsa).unwrap();
        assert!(lone.compute(&[0xff; 256]).is_none(), "not below the modulus");
        assert!(lone.compute(&[1; 255]).is_none(), "too short");
        // SAFETY: no preconditions.
        assert_eq!(unsafe { super::ffi::ERR_peek_error() }, 0);
    }

    /// AWS-LC rejects the key, or detects the fault in the result; a result that reveals the key is not released.
    #[test]
    fn a_key_with_a_fault_signs_nothing() {
        let rsa = Rsa::generate(2048).unwrap();
        let der = rsa.private_key_to_der().unwrap();
        let dp = rsa.dmp1().unwrap().to_vec();
        let at = der.windows(dp.len()).position(|window| window == dp).expect("the key contains dP");
        let mut faulty = der;
        faulty[at + dp.len() / 2] ^= 4;
        // SAFETY: the bytes are readable for their length.
        let key = unsafe { super::ffi::RSA_private_key_from_bytes(faulty.as_ptr(), faulty.len()) };
        let computed = std::ptr::NonNull::new(key).and_then(|key| LoneRsa(key).compute(&[1; 256]));
        assert!(computed.is_none());
    }
}
