//! Signature paddings: EMSA-PKCS1-v1_5 and EMSA-PSS, in all the variants that OpenSSL has.

use super::{public, raw_public};
use crate::{
    digest::Digest,
    error::{Failure, Reason},
};
use boring::{hash::MessageDigest, pkey::Public, rsa::Rsa};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_engine::{
    Operation, OperationError, PublicKey, SignatureScheme, Zeroizing,
    rsa_padding::{self, Pss},
};

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
    let rsa = public(key)?;
    let Ok(raised) = raw_public(&rsa, signature) else { return Ok(false) };
    match padding {
        Padding::Pss { mgf1, salt } => {
            let digest = digest.ok_or_else(no_digest)?;
            let known = match salt {
                Salt::Digest => DIGEST,
                Salt::Auto | Salt::AutoDigestMax => ANY,
                Salt::Max => length(max_salt(&rsa, digest)?)?,
                Salt::Length(salt) => length(salt)?,
            };
            let (hash, mgf1) = algorithms(digest, mgf1)?;
            // SAFETY: `data` is as long as the digest, `raised` as the modulus; the function reads no more.
            Ok(data.len() == digest.size()
                && unsafe {
                    ffi::RSA_verify_PKCS1_PSS_mgf1(
                        rsa.as_ptr(),
                        data.as_ptr(),
                        hash.as_ptr(),
                        mgf1.as_ptr(),
                        raised.as_ptr(),
                        known,
                    ) == 1
                })
        }
        Padding::Pkcs1 | Padding::None => {
            Ok(encode(key, padding, digest, data).is_ok_and(|encoded| *encoded == raised))
        }
    }
}

/// BoringSSL's constants for salt lengths.
const DIGEST: i32 = -1;
const ANY: i32 = -2;

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
            let rsa = public(key).ok()?;
            if salt_length(&rsa, digest, salt).ok()? != digest.size() {
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
    let rsa = public(key)?;
    let size = rsa.size() as usize;
    match padding {
        Padding::None if data.len() == size => Ok(Zeroizing::new(data.to_vec())),
        Padding::None => {
            Err(Failure::new(Reason::WrongInput, "without padding, the input must be as long as the modulus"))
        }
        Padding::Pkcs1 => rsa_padding::pkcs1(size, digest.map(Digest::nid), data).map_err(refused),
        Padding::Pss { mgf1, salt } => {
            let digest = digest.ok_or_else(no_digest)?;
            let salt = length(salt_length(&rsa, digest, salt)?)?;
            let (hash, mgf1) = algorithms(digest, mgf1)?;
            rsa_padding::pss(&rsa, Pss { hash, mgf1, salt }, data).map_err(|_| no_room())
        }
    }
}

fn refused(error: OperationError) -> Failure {
    match error {
        OperationError::InvalidInput => no_room(),
        _ => Failure::new(Reason::UnsupportedDigest, "it has no encoding in PKCS #1"),
    }
}

fn salt_length(rsa: &Rsa<Public>, digest: Digest, salt: Salt) -> Result<usize, Failure> {
    Ok(match salt {
        Salt::Digest => digest.size(),
        Salt::Auto | Salt::Max => max_salt(rsa, digest)?,
        Salt::AutoDigestMax => max_salt(rsa, digest)?.min(digest.size()),
        Salt::Length(length) => length,
    })
}

/// Returns emLen - hLen - 2 (RFC 8017 section 9.1.1).
fn max_salt(rsa: &Rsa<Public>, digest: Digest) -> Result<usize, Failure> {
    let encoded = (rsa.n().num_bits().unsigned_abs() as usize).saturating_sub(1).div_ceil(8);
    encoded.checked_sub(digest.size() + 2).ok_or_else(no_room)
}

fn algorithms(digest: Digest, mgf1: Option<Digest>) -> Result<(MessageDigest, MessageDigest), Failure> {
    let algorithm = |digest: Digest| digest.algorithm().ok_or_else(no_digest);
    Ok((algorithm(digest)?, algorithm(mgf1.unwrap_or(digest))?))
}

fn length(length: usize) -> Result<i32, Failure> {
    i32::try_from(length).map_err(|_| no_room())
}

fn no_room() -> Failure {
    Failure::new(Reason::WrongInput, "the key is too short for this digest and padding")
}

fn no_digest() -> Failure {
    Failure::new(Reason::UnsupportedDigest, "this padding requires SHA-1, SHA-2 or MD5")
}
