//! Signature verification by BoringSSL's own verifier.

use boring::{
    hash::{MessageDigest, hash},
    rsa::Padding,
    sign::{RsaPssSaltlen, Verifier},
};
use quadrille_engine::{Key, SignatureScheme as S};

/// Returns whether this is the key's signature over the message.
pub(crate) fn verifies(key: &Key, scheme: S, message: &[u8], signature: &[u8]) -> bool {
    match scheme {
        S::RsaPkcs1Md5Sha1 => md5_sha1(key, message, signature),
        S::Ed25519 | S::MlDsa(_) => Verifier::new_without_digest(key.pkey())
            .unwrap()
            .verify_oneshot(signature, message)
            .unwrap_or(false),
        _ => {
            let mut verifier = Verifier::new(digest(scheme), key.pkey()).unwrap();
            if matches!(scheme, S::RsaPssSha256 | S::RsaPssSha384 | S::RsaPssSha512) {
                verifier.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
                verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH).unwrap();
            }
            verifier.verify_oneshot(signature, message).unwrap_or(false)
        }
    }
}

/// No library verifies this scheme as a whole: removes the padding, and compares (RFC 2246 section 7.4.3).
fn md5_sha1(key: &Key, message: &[u8], signature: &[u8]) -> bool {
    let rsa = key.pkey().rsa().unwrap();
    let mut opened = vec![0; rsa.size() as usize];
    let len = rsa.public_decrypt(signature, &mut opened, Padding::PKCS1).unwrap();
    let both = [hash(MessageDigest::md5(), message).unwrap(), hash(MessageDigest::sha1(), message).unwrap()];
    opened[..len] == both.map(|digest| digest.to_vec()).concat()
}

fn digest(scheme: S) -> MessageDigest {
    match scheme {
        S::RsaPkcs1Sha1 | S::EcdsaSha1 => MessageDigest::sha1(),
        S::RsaPkcs1Sha384 | S::RsaPssSha384 | S::EcdsaSha384 => MessageDigest::sha384(),
        S::RsaPkcs1Sha512 | S::RsaPssSha512 | S::EcdsaSha512 => MessageDigest::sha512(),
        _ => MessageDigest::sha256(),
    }
}
