//! Verification of results before release: a faulty CRT half would reveal the private key (Boneh, DeMillo, Lipton
//! 1997).

use crate::{Operation, PublicKey, SignatureScheme, public::PublicMaterial, scheme::RsaPadding};
use boring::{
    ecdsa::EcdsaSig,
    error::ErrorStack,
    nid::Nid,
    pkey::Public,
    rsa::{Padding, Rsa},
    sign::Verifier,
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;

impl Operation {
    /// Returns whether `result` is valid for this operation, whose key can [perform it](Self::check): for results
    /// computed by another machine.
    pub fn verify(&self, key: &PublicKey, result: &[u8]) -> bool {
        holds(key, self, result)
    }
}

/// Returns whether the result is valid for the key and the operation.
pub(crate) fn holds(key: &PublicKey, operation: &Operation, result: &[u8]) -> bool {
    let holds = match (key.material(), operation) {
        (PublicMaterial::Rsa(rsa), Operation::Decrypt { ciphertext }) => raises_to(rsa, result, ciphertext),
        (PublicMaterial::Rsa(rsa), Operation::Sign { scheme, digest }) => {
            rsa_signature(rsa, *scheme, digest, result)
        }
        (PublicMaterial::Ec(ec), Operation::Sign { digest, .. }) => {
            EcdsaSig::from_der(result).and_then(|signature| signature.verify(digest, ec)).unwrap_or(false)
        }
        (PublicMaterial::Ed25519 | PublicMaterial::MlDsa, Operation::Sign { digest: message, .. }) => {
            Verifier::new_without_digest(key.pkey())
                .and_then(|mut verifier| verifier.verify_oneshot(result, message))
                .unwrap_or(false)
        }
        (_, Operation::Decrypt { .. }) => false,
    };
    if !holds {
        // Otherwise the errors stay in the thread's error queue, where the next caller of BoringSSL would see them as
        // its own.
        drop(ErrorStack::get());
    }
    holds
}

fn raises_to(rsa: &Rsa<Public>, result: &[u8], expected: &[u8]) -> bool {
    let mut raised = vec![0; expected.len()];
    rsa.public_encrypt(result, &mut raised, Padding::NONE).is_ok() && raised == expected
}

fn rsa_signature(rsa: &Rsa<Public>, scheme: SignatureScheme, digest: &[u8], signature: &[u8]) -> bool {
    const SALT_AS_LONG_AS_HASH: i32 = -1;
    let hash_nid = scheme.hash().map_or(Nid::MD5_SHA1, |hash| hash.type_());
    match (scheme.rsa_padding(), scheme.hash()) {
        // SAFETY: digest and signature are readable for the lengths that are passed.
        (Some(RsaPadding::Pkcs1), _) => unsafe {
            ffi::RSA_verify(
                hash_nid.as_raw(),
                digest.as_ptr(),
                digest.len(),
                signature.as_ptr(),
                signature.len(),
                rsa.as_ptr(),
            ) == 1
        },
        // SAFETY: as above; the hashes are BoringSSL's statics.
        (Some(RsaPadding::Pss), Some(hash)) => unsafe {
            ffi::RSA_verify_pss_mgf1(
                rsa.as_ptr(),
                digest.as_ptr(),
                digest.len(),
                hash.as_ptr(),
                hash.as_ptr(),
                SALT_AS_LONG_AS_HASH,
                signature.as_ptr(),
                signature.len(),
            ) == 1
        },
        _ => false,
    }
}
