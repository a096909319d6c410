//! Private-key operations.

use crate::{
    PublicKey, SignatureScheme,
    error::OperationError,
    public::PublicMaterial,
    scheme::{MD5_SHA1_LEN, RsaPadding},
};
use boring::{
    bn::BigNum,
    hash::{MessageDigest, hash},
    pkey::Public,
    rsa::Rsa,
};
use std::cmp::Ordering;

/// Private-key operation, hashed but not yet padded.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A signature over a digest; over the message itself for Ed25519 and ML-DSA.
    Sign {
        /// Padding and hash.
        scheme: SignatureScheme,
        /// The digest, or for Ed25519 and ML-DSA the message.
        digest: Box<[u8]>,
    },
    /// Raw RSA private operation on a ciphertext of the modulus's length. The padding is kept: the caller must strip
    /// it in constant time (RFC 5246 section 7.4.7.1).
    Decrypt {
        /// Ciphertext of the modulus's length; as a number, below the modulus.
        ciphertext: Box<[u8]>,
    },
}

impl Operation {
    /// Creates a signature operation over `message`, which is hashed here. The key is [checked](Self::check) when the
    /// operation is submitted.
    ///
    /// # Errors
    /// [`Failed`](OperationError::Failed) if BoringSSL has no memory for the hash.
    pub fn sign(scheme: SignatureScheme, message: &[u8]) -> Result<Self, OperationError> {
        Ok(Self::Sign { scheme, digest: digest(scheme, message)? })
    }

    /// Creates a raw RSA decryption. The key is [checked](Self::check) when the operation is submitted.
    pub fn decrypt(ciphertext: &[u8]) -> Self {
        Self::Decrypt { ciphertext: ciphertext.into() }
    }

    /// Checks that this key can perform the operation. The engine checks before it queues, so backends see valid
    /// operations only; callers that send operations to another machine must check here.
    ///
    /// # Errors
    /// [`WrongKeyType`](OperationError::WrongKeyType) if the key does not support the operation,
    /// [`InvalidInput`](OperationError::InvalidInput) if digest or ciphertext do not fit it.
    pub fn check(&self, key: &PublicKey) -> Result<(), OperationError> {
        match self {
            Self::Sign { scheme, digest } if scheme.fits(key.key_type()) => {
                let fits =
                    scheme.digest_len().is_none_or(|len| len == digest.len()) && has_room(key, *scheme);
                fits.then_some(()).ok_or(OperationError::InvalidInput)
            }
            Self::Sign { .. } => Err(OperationError::WrongKeyType),
            Self::Decrypt { ciphertext } => match key.material() {
                PublicMaterial::Rsa(rsa) => check_ciphertext(rsa, ciphertext),
                _ => Err(OperationError::WrongKeyType),
            },
        }
    }
}

fn digest(scheme: SignatureScheme, message: &[u8]) -> Result<Box<[u8]>, OperationError> {
    let hashed = |algorithm| hash(algorithm, message).map_err(|_| OperationError::Failed);
    Ok(match scheme.hash() {
        Some(algorithm) => hashed(algorithm)?.as_ref().into(),
        None if scheme == SignatureScheme::RsaPkcs1Md5Sha1 => {
            let both =
                [hashed(MessageDigest::md5())?.as_ref(), hashed(MessageDigest::sha1())?.as_ref()].concat();
            debug_assert_eq!(both.len(), MD5_SHA1_LEN, "MD5 has 16 bytes, SHA-1 has 20");
            both.into()
        }
        None => message.into(),
    })
}

/// EMSA-PSS needs two hashes and two bytes (RFC 8017 section 9.1.1), which do not fit into 1024 bits for SHA-512.
/// PKCS#1 v1.5 fits every modulus that a key may have.
fn has_room(key: &PublicKey, scheme: SignatureScheme) -> bool {
    match (scheme.rsa_padding(), scheme.digest_len(), key.material()) {
        (Some(RsaPadding::Pss), Some(hash), PublicMaterial::Rsa(rsa)) => {
            let encoded = (rsa.n().num_bits().unsigned_abs() as usize).saturating_sub(1).div_ceil(8);
            encoded >= 2 * hash + 2
        }
        _ => true,
    }
}

/// Both numbers are public, so the comparison need not be constant-time.
fn check_ciphertext(rsa: &Rsa<Public>, ciphertext: &[u8]) -> Result<(), OperationError> {
    if ciphertext.len() != rsa.size() as usize {
        return Err(OperationError::InvalidInput);
    }
    match BigNum::from_slice(ciphertext).map_err(|_| OperationError::Failed)?.ucmp(rsa.n()) {
        Ordering::Less => Ok(()),
        _ => Err(OperationError::InvalidInput),
    }
}
