//! What a private key is asked to do.

use crate::{Key, SignatureScheme, error::OperationError};
use boring::hash::{MessageDigest, hash};

/// One private-key operation, hashed but not yet padded.
#[derive(Debug)]
pub enum Operation {
    /// A signature over a digest; over the message itself for Ed25519.
    Sign {
        /// Which padding and hash.
        scheme: SignatureScheme,
        /// The digest, or for Ed25519 the message.
        digest: Box<[u8]>,
    },
    /// The raw RSA private operation on a ciphertext of the modulus's length. The padding stays on: whoever asked
    /// must strip it in constant time (RFC 5246 section 7.4.7.1).
    Decrypt {
        /// As long as the modulus.
        ciphertext: Box<[u8]>,
    },
}

impl Operation {
    /// A signature over `message`, which is hashed here.
    pub fn sign(key: &Key, scheme: SignatureScheme, message: &[u8]) -> Result<Self, OperationError> {
        if !scheme.fits(key.key_type()) {
            return Err(OperationError::WrongKeyType);
        }
        Ok(Self::Sign { scheme, digest: digest(scheme, message)? })
    }

    /// A raw RSA decryption.
    pub fn decrypt(key: &Key, ciphertext: &[u8]) -> Result<Self, OperationError> {
        match key.key_type().modulus_len() {
            None => Err(OperationError::WrongKeyType),
            Some(len) if len != ciphertext.len() => Err(OperationError::InvalidInput),
            Some(_) => Ok(Self::Decrypt { ciphertext: ciphertext.into() }),
        }
    }
}

fn digest(scheme: SignatureScheme, message: &[u8]) -> Result<Box<[u8]>, OperationError> {
    let hashed = |algorithm| hash(algorithm, message).map_err(|_| OperationError::Failed);
    Ok(match scheme.hash() {
        Some(algorithm) => hashed(algorithm)?.as_ref().into(),
        None if scheme == SignatureScheme::RsaPkcs1Md5Sha1 => {
            [hashed(MessageDigest::md5())?.as_ref(), hashed(MessageDigest::sha1())?.as_ref()].concat().into()
        }
        None => message.into(),
    })
}
