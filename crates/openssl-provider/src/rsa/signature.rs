//! Signature paddings: EMSA-PKCS1-v1_5 and EMSA-PSS, in all the variants that OpenSSL has.

use super::{
    pss::{self, Hashes},
    public, raw_public,
};
use crate::{
    der,
    digest::Digest,
    error::{Failure, Reason},
};
use quadrille_engine::{KeyType, Operation, PublicKey, SignatureScheme, Zeroizing, rsa_padding};

/// Padding of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Padding {
    Pkcs1,
    Pss { mgf1: Option<Digest>, salt: Salt },
    None,
}

/// Length of the PSS salt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Salt {
    /// The digest length.
    Digest,
    /// The maximum length; any length when verifying.
    Auto,
    /// The maximum length.
    Max,
    /// The digest length, or less if there is no room; any length when verifying.
    AutoDigestMax,
    Length(usize),
}

/// Returns the operation for such a signature. `digest` is the algorithm that produced `data`; without it, `data` is
/// signed unchanged.
pub(crate) fn operation(
    key: &PublicKey,
    padding: Padding,
    digest: Option<Digest>,
    data: &[u8],
) -> Result<Operation, Failure> {
    if digest.is_some_and(|digest| digest.size() != data.len()) {
        return Err(Failure::new(Reason::WrongInput, "the digest does not have its algorithm's length"));
    }
    if let Some(scheme) = scheme(key, padding, digest) {
        return Ok(Operation::Sign { scheme, digest: data.into() });
    }
    Ok(Operation::Decrypt { ciphertext: encode(key, padding, digest, data)?.as_slice().into() })
}

/// Returns whether a signature is valid.
pub(crate) fn verify(
    key: &PublicKey,
    padding: Padding,
    digest: Option<Digest>,
    data: &[u8],
    signature: &[u8],
) -> Result<bool, Failure> {
    let Ok(raised) = raw_public(&public(key)?, signature) else { return Ok(false) };
    match padding {
        Padding::Pss { mgf1, salt } => {
            let digest = digest.ok_or_else(no_digest)?;
            let known = match salt {
                Salt::Auto | Salt::AutoDigestMax => None,
                other => Some(salt_length(key, digest, other)?),
            };
            pss::verify(bits(key), hashes(digest, mgf1), known, data, &raised)
        }
        Padding::Pkcs1 | Padding::None => {
            Ok(encode(key, padding, digest, data).is_ok_and(|encoded| *encoded == raised))
        }
    }
}

/// Returns the signed data: the digest if its algorithm is known, otherwise what is between padding and end. It
/// concerns public values only.
///
/// # Errors
/// If the padding or the digest's algorithm is wrong, or the padding does not allow recovery.
pub(crate) fn recover(
    key: &PublicKey,
    padding: Padding,
    digest: Option<Digest>,
    signature: &[u8],
) -> Result<Vec<u8>, Failure> {
    let invalid = || Failure::new(Reason::WrongInput, "the signature is not valid");
    let raised = raw_public(&public(key)?, signature)?;
    match padding {
        Padding::None => Ok(raised),
        Padding::Pss { .. } => Err(Failure::new(
            Reason::UnsupportedParameter,
            "no data is recovered from PSS; use pkcs1 or none",
        )),
        Padding::Pkcs1 => {
            let padded = raised.strip_prefix(&[0, 1]).ok_or_else(invalid)?;
            let fill = padded.iter().take_while(|byte| **byte == 0xff).count();
            let data = padded[fill..].strip_prefix(&[0]).filter(|_| fill >= 8).ok_or_else(invalid)?;
            let Some(digest) = digest else { return Ok(data.to_vec()) };
            let signed = data.get(data.len().saturating_sub(digest.size())..).unwrap_or_default();
            let expected = digest_info(Some(digest), signed);
            if signed.len() == digest.size() && expected == data {
                Ok(signed.to_vec())
            } else {
                Err(invalid())
            }
        }
    }
}

/// Returns the equivalent TLS signature scheme, which every backend and every key server supports.
fn scheme(key: &PublicKey, padding: Padding, digest: Option<Digest>) -> Option<SignatureScheme> {
    use SignatureScheme as S;
    match (padding, digest?) {
        (Padding::Pkcs1, Digest::Md5Sha1) => Some(S::RsaPkcs1Md5Sha1),
        (Padding::Pkcs1, Digest::Sha1) => Some(S::RsaPkcs1Sha1),
        (Padding::Pkcs1, Digest::Sha256) => Some(S::RsaPkcs1Sha256),
        (Padding::Pkcs1, Digest::Sha384) => Some(S::RsaPkcs1Sha384),
        (Padding::Pkcs1, Digest::Sha512) => Some(S::RsaPkcs1Sha512),
        (Padding::Pss { mgf1, salt }, digest) if mgf1.is_none_or(|mgf1| mgf1 == digest) => {
            if salt_length(key, digest, salt).ok()? != digest.size() {
                return None;
            }
            match digest {
                Digest::Sha256 => Some(S::RsaPssSha256),
                Digest::Sha384 => Some(S::RsaPssSha384),
                Digest::Sha512 => Some(S::RsaPssSha512),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Encodes the input of the raw private operation, as long as the modulus.
fn encode(
    key: &PublicKey,
    padding: Padding,
    digest: Option<Digest>,
    data: &[u8],
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let size = bits(key).div_ceil(8);
    match padding {
        Padding::None if data.len() == size => Ok(Zeroizing::new(data.to_vec())),
        Padding::None => {
            Err(Failure::new(Reason::WrongInput, "without padding, the input must be as long as the modulus"))
        }
        Padding::Pkcs1 => rsa_padding::pkcs1(size, None, &digest_info(digest, data)).map_err(|_| no_room()),
        Padding::Pss { mgf1, salt } => {
            let digest = digest.ok_or_else(no_digest)?;
            if digest.size() != data.len() {
                return Err(Failure::new(
                    Reason::WrongInput,
                    "the digest does not have its algorithm's length",
                ));
            }
            pss::encode(bits(key), hashes(digest, mgf1), salt_length(key, digest, salt)?, data)
        }
    }
}

/// Encodes the DER `DigestInfo` (RFC 8017 section 9.2); the MD5-SHA-1 pair of TLS 1.0, and data without an algorithm,
/// have none.
fn digest_info(digest: Option<Digest>, data: &[u8]) -> Vec<u8> {
    match digest.and_then(Digest::oid) {
        Some(oid) => der::sequence(&[der::algorithm(oid), der::tagged(0x04, data)]),
        None => data.to_vec(),
    }
}

/// Returns the length of the salt in a new signature.
pub(crate) fn salt_length(key: &PublicKey, digest: Digest, salt: Salt) -> Result<usize, Failure> {
    let longest = || pss::max_salt(bits(key), digest).ok_or_else(no_room);
    Ok(match salt {
        Salt::Digest => digest.size(),
        Salt::Auto | Salt::Max => longest()?,
        Salt::AutoDigestMax => longest()?.min(digest.size()),
        Salt::Length(length) => length,
    })
}

fn hashes(digest: Digest, mgf1: Option<Digest>) -> Hashes {
    Hashes { message: digest, mgf1: mgf1.unwrap_or(digest) }
}

fn bits(key: &PublicKey) -> usize {
    match key.key_type() {
        KeyType::Rsa { bits } => bits as usize,
        _ => 0,
    }
}

fn no_room() -> Failure {
    Failure::new(Reason::WrongInput, "the key is too short for this digest and padding")
}

fn no_digest() -> Failure {
    Failure::new(Reason::UnsupportedDigest, "this padding requires a digest")
}
