//! Signature padding (RFC 8017), shared by all backends: each computes one raw private operation.

use crate::{error::OperationError, operation::Operation, scheme::RsaPadding};
use boring::{error::ErrorStack, hash::MessageDigest, nid::Nid, pkey::Private, rsa::Rsa};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use zeroize::Zeroizing;

/// Encodes the input of the raw private operation, as long as the modulus.
pub(crate) fn encode(
    rsa: &Rsa<Private>,
    operation: &Operation,
) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    match operation {
        Operation::Decrypt { ciphertext } => Ok(Zeroizing::new(ciphertext.to_vec())),
        Operation::Sign { scheme, digest } => match (scheme.rsa_padding(), scheme.hash()) {
            (Some(RsaPadding::Pss), Some(hash)) => pss(rsa, Pss::of_tls(hash), digest),
            (Some(RsaPadding::Pkcs1), hash) => {
                let hash = hash.map_or(Nid::MD5_SHA1, |hash| hash.type_());
                pkcs1(rsa.size() as usize, Some(hash), digest)
            }
            _ => Err(OperationError::WrongKeyType),
        },
    }
}

/// Encodes EMSA-PKCS1-v1_5, `size` bytes: `00 01 ff .. ff 00 DigestInfo`, at least eight bytes of `ff`. Without a
/// hash, `digest` replaces the `DigestInfo`.
///
/// # Errors
/// [`InvalidInput`](OperationError::InvalidInput) if there is no room, [`Failed`](OperationError::Failed) if the
/// digest has the wrong length for this hash, or PKCS#1 does not define the hash.
pub fn pkcs1(size: usize, hash: Option<Nid>, digest: &[u8]) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    let info = hash.map_or_else(|| Ok(digest.to_vec()), |hash| digest_info(hash, digest))?;
    let fill =
        size.checked_sub(info.len() + 3).filter(|&fill| fill >= 8).ok_or(OperationError::InvalidInput)?;
    let mut encoded = Zeroizing::new(Vec::with_capacity(size));
    encoded.extend_from_slice(&[0, 1]);
    encoded.resize(2 + fill, 0xff);
    encoded.push(0);
    encoded.extend_from_slice(&info);
    Ok(encoded)
}

/// Encodes the DER `DigestInfo`; the MD5 and SHA-1 pair of TLS 1.0 has none.
///
/// # Errors
/// [`Failed`](OperationError::Failed) if the digest has the wrong length for this hash, or PKCS#1 does not define the
/// hash.
pub fn digest_info(hash: Nid, digest: &[u8]) -> Result<Vec<u8>, OperationError> {
    let (mut message, mut len, mut allocated) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the three outputs are valid for writes, and `digest` is readable for its length.
    let ok = unsafe {
        ffi::RSA_add_pkcs1_prefix(
            &mut message,
            &mut len,
            &mut allocated,
            hash.as_raw(),
            digest.as_ptr(),
            digest.len(),
        )
    };
    if ok != 1 {
        return Err(refused());
    }
    // SAFETY: on success `message` points to `len` readable bytes, owned by the caller if `allocated` is set.
    unsafe {
        let info = std::slice::from_raw_parts(message, len).to_vec();
        if allocated != 0 {
            ffi::OPENSSL_free(message.cast());
        }
        Ok(info)
    }
}

/// Hashes of EMSA-PSS, and the length of its salt.
#[derive(Clone, Copy)]
pub struct Pss {
    /// Hash of the message.
    pub hash: MessageDigest,
    /// Hash of MGF1.
    pub mgf1: MessageDigest,
    /// Salt length in bytes, or -1 for the length of the hash.
    pub salt: i32,
}

impl Pss {
    /// Returns the parameters that TLS requires (RFC 8446 section 4.2.3).
    fn of_tls(hash: MessageDigest) -> Self {
        Self { hash, mgf1: hash, salt: -1 }
    }
}

/// Encodes EMSA-PSS, as long as the modulus of `rsa`.
///
/// # Errors
/// [`InvalidInput`](OperationError::InvalidInput) if the digest has the wrong length for its hash,
/// [`Failed`](OperationError::Failed) if there is no room.
pub fn pss<T>(rsa: &Rsa<T>, padding: Pss, digest: &[u8]) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    let Pss { hash, mgf1, salt } = padding;
    if digest.len() != hash.size() {
        return Err(OperationError::InvalidInput);
    }
    // SAFETY: it is an RSA key.
    let size = unsafe { ffi::RSA_size(rsa.as_ptr()) };
    let mut encoded = Zeroizing::new(vec![0; size as usize]);
    // SAFETY: `encoded` is as long as the modulus and `digest` as long as the hash, as the function requires.
    let ok = unsafe {
        ffi::RSA_padding_add_PKCS1_PSS_mgf1(
            rsa.as_ptr(),
            encoded.as_mut_ptr(),
            digest.as_ptr(),
            hash.as_ptr(),
            mgf1.as_ptr(),
            salt,
        )
    };
    if ok == 1 { Ok(encoded) } else { Err(refused()) }
}

/// Clears the thread's error queue, where the errors would otherwise stay.
fn refused() -> OperationError {
    drop(ErrorStack::get());
    OperationError::Failed
}
