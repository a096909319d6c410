//! Signature padding (RFC 8017), so that every backend computes the same thing: one raw private operation.

use crate::{error::OperationError, operation::Operation, scheme::RsaPadding};
use boring::{error::ErrorStack, hash::MessageDigest, pkey::Private, rsa::Rsa};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use zeroize::Zeroizing;

/// The input of the raw private operation, as long as the modulus.
pub(crate) fn encode(
    rsa: &Rsa<Private>,
    operation: &Operation,
) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    match operation {
        Operation::Decrypt { ciphertext } => Ok(Zeroizing::new(ciphertext.to_vec())),
        Operation::Sign { scheme, digest } => match (scheme.rsa_padding(), scheme.hash()) {
            (Some(RsaPadding::Pss), Some(hash)) => pss(rsa, hash, digest),
            (Some(RsaPadding::Pkcs1), hash) => pkcs1(rsa, hash, digest),
            _ => Err(OperationError::WrongKeyType),
        },
    }
}

/// EMSA-PKCS1-v1_5: `00 01 ff .. ff 00 DigestInfo`, at least eight bytes of `ff`.
fn pkcs1(
    rsa: &Rsa<Private>,
    hash: Option<MessageDigest>,
    digest: &[u8],
) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    let info = digest_info(hash, digest)?;
    let len = rsa.size() as usize;
    let fill =
        len.checked_sub(info.len() + 3).filter(|&fill| fill >= 8).ok_or(OperationError::InvalidInput)?;
    let mut encoded = Zeroizing::new(Vec::with_capacity(len));
    encoded.extend_from_slice(&[0, 1]);
    encoded.resize(2 + fill, 0xff);
    encoded.push(0);
    encoded.extend_from_slice(&info);
    Ok(encoded)
}

/// The DER `DigestInfo`; the MD5 and SHA-1 pair of TLS 1.0 goes without.
fn digest_info(hash: Option<MessageDigest>, digest: &[u8]) -> Result<Vec<u8>, OperationError> {
    let Some(hash) = hash else { return Ok(digest.to_vec()) };
    let (mut message, mut len, mut allocated) = (std::ptr::null_mut(), 0, 0);
    // SAFETY: the three outputs are valid for writes, and `digest` is readable for its length.
    let ok = unsafe {
        ffi::RSA_add_pkcs1_prefix(
            &mut message,
            &mut len,
            &mut allocated,
            hash.type_().as_raw(),
            digest.as_ptr(),
            digest.len(),
        )
    };
    if ok != 1 {
        return Err(refused());
    }
    // SAFETY: on success `message` points to `len` readable bytes, ours to free where `allocated` says so.
    unsafe {
        let info = std::slice::from_raw_parts(message, len).to_vec();
        if allocated != 0 {
            ffi::OPENSSL_free(message.cast());
        }
        Ok(info)
    }
}

/// EMSA-PSS with MGF1 and a salt as long as the hash, as TLS wants it (RFC 8446 section 4.2.3).
fn pss(rsa: &Rsa<Private>, hash: MessageDigest, digest: &[u8]) -> Result<Zeroizing<Vec<u8>>, OperationError> {
    const SALT_AS_LONG_AS_HASH: i32 = -1;
    if digest.len() != hash.size() {
        return Err(OperationError::InvalidInput);
    }
    let mut encoded = Zeroizing::new(vec![0; rsa.size() as usize]);
    // SAFETY: `encoded` is as long as the modulus and `digest` as long as the hash: what the function reads and writes.
    let ok = unsafe {
        ffi::RSA_padding_add_PKCS1_PSS_mgf1(
            rsa.as_ptr(),
            encoded.as_mut_ptr(),
            digest.as_ptr(),
            hash.as_ptr(),
            hash.as_ptr(),
            SALT_AS_LONG_AS_HASH,
        )
    };
    if ok == 1 { Ok(encoded) } else { Err(refused()) }
}

/// The reason would otherwise stay in the thread's error queue.
fn refused() -> OperationError {
    drop(ErrorStack::get());
    OperationError::Failed
}
