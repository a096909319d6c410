//! Operations of TLS as mechanisms of PKCS#11, and their results in the forms of TLS.

use crate::{TokenError, connection::Failure};
use boring::{bn::BigNum, ecdsa::EcdsaSig, error::ErrorStack, nid::Nid};
use cryptoki::{
    mechanism::{
        Mechanism, MechanismType,
        eddsa::{EddsaParams, EddsaSignatureScheme},
        rsa::{PkcsMgfType, PkcsPssParams},
    },
    object::ObjectHandle,
    session::Session,
};
use quadrille_engine::{
    KeyType, Operation, OperationError, PublicKey, SignatureScheme as S, Zeroizing, rsa_padding,
};

/// Computes an operation that fits the key.
pub(crate) fn compute(
    session: &Session,
    handle: ObjectHandle,
    public: &PublicKey,
    operation: &Operation,
) -> Result<Zeroizing<Vec<u8>>, Failure> {
    match operation {
        Operation::Decrypt { ciphertext } => {
            let plain = Zeroizing::new(session.decrypt(&Mechanism::RsaX509, handle, ciphertext)?);
            Ok(padded(plain, ciphertext.len()))
        }
        Operation::Sign { scheme, digest } => {
            let (mechanism, input) = prepare(*scheme, digest, public.key_type())?;
            let signature = session.sign(&mechanism, handle, &input)?;
            let signature =
                if matches!(mechanism, Mechanism::Ecdsa) { to_der(&signature)? } else { signature };
            Ok(Zeroizing::new(signature))
        }
    }
}

/// Returns the mechanism, and its input.
fn prepare(scheme: S, digest: &[u8], key_type: KeyType) -> Result<(Mechanism<'static>, Vec<u8>), Failure> {
    let pkcs1 = |hash| {
        let info = rsa_padding::digest_info(hash, digest).map_err(unsupported)?;
        Ok((Mechanism::RsaPkcs, info))
    };
    let pss = |hash_alg, mgf| {
        let s_len = digest.len().try_into()?;
        Ok((Mechanism::RsaPkcsPss(PkcsPssParams { hash_alg, mgf, s_len }), digest.to_vec()))
    };
    match scheme {
        S::RsaPkcs1Md5Sha1 => pkcs1(Nid::MD5_SHA1),
        S::RsaPkcs1Sha1 => pkcs1(Nid::SHA1),
        S::RsaPkcs1Sha256 => pkcs1(Nid::SHA256),
        S::RsaPkcs1Sha384 => pkcs1(Nid::SHA384),
        S::RsaPkcs1Sha512 => pkcs1(Nid::SHA512),
        S::RsaPssSha256 => pss(MechanismType::SHA256, PkcsMgfType::MGF1_SHA256),
        S::RsaPssSha384 => pss(MechanismType::SHA384, PkcsMgfType::MGF1_SHA384),
        S::RsaPssSha512 => pss(MechanismType::SHA512, PkcsMgfType::MGF1_SHA512),
        S::EcdsaSha1 | S::EcdsaSha256 | S::EcdsaSha384 | S::EcdsaSha512 => {
            // The leftmost bits of a longer digest (FIPS 186-5 section 6.4.1); tokens reject more.
            let most = match key_type {
                KeyType::EcdsaP256 => 32,
                KeyType::EcdsaP384 => 48,
                _ => digest.len(),
            };
            Ok((Mechanism::Ecdsa, digest[..digest.len().min(most)].to_vec()))
        }
        S::Ed25519 => {
            let parameters = EddsaParams::new(EddsaSignatureScheme::Ed25519);
            Ok((Mechanism::Eddsa(parameters), digest.to_vec()))
        }
        S::MlDsa(_) => Err(unsupported(OperationError::WrongKeyType)),
    }
}

fn unsupported(error: OperationError) -> Failure {
    TokenError::Failed(error.to_string()).into()
}

/// Adds the leading zeros that some tokens remove.
fn padded(plain: Zeroizing<Vec<u8>>, length: usize) -> Zeroizing<Vec<u8>> {
    match length.checked_sub(plain.len()) {
        None | Some(0) => plain,
        Some(missing) => {
            let mut padded = Zeroizing::new(vec![0; length]);
            padded[missing..].copy_from_slice(&plain);
            padded
        }
    }
}

/// Converts r and s of equal length (PKCS#11 3.0 section 2.3.1) to the form of TLS.
fn to_der(signature: &[u8]) -> Result<Vec<u8>, Failure> {
    let converted = || {
        let (r, s) = signature.split_at(signature.len() / 2);
        EcdsaSig::from_private_components(BigNum::from_slice(r)?, BigNum::from_slice(s)?)?.to_der()
    };
    converted().map_err(|error: ErrorStack| TokenError::Failed(error.to_string()).into())
}
