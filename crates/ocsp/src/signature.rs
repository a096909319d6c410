//! Signature verification: a response is signed by the certificate's issuer, or by a responder that it has authorized
//! (RFC 6960 section 4.2.2.2).

use crate::{
    Failure, UnixTime,
    inquiry::{has_issued, parse},
};
use boring::{
    error::ErrorStack,
    hash::MessageDigest,
    pkey::{Id, PKey, Public},
    sign::Verifier,
    x509::{X509, X509Ref},
};
use boring_sys as ffi;
use der::{
    Decode, Encode, Sequence,
    asn1::{AnyRef, BitStringRef, ObjectIdentifier},
};
use x509_cert::{
    ext::pkix::{ExtendedKeyUsage, KeyUsage},
    spki::AlgorithmIdentifierRef,
};

const ID_KP_OCSP_SIGNING: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.9");
/// Maximum number of certificates tried.
const MOST_SIGNERS: usize = 4;

/// BasicOCSPResponse, with the signed data as received.
#[derive(Sequence)]
struct Signed<'a> {
    data: AnyRef<'a>,
    algorithm: AlgorithmIdentifierRef<'a>,
    signature: BitStringRef<'a>,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    certificates: Option<Vec<AnyRef<'a>>>,
}

/// Returns the data of a BasicOCSPResponse, in DER, if an authorized signer has signed it.
pub(crate) fn signed_data(basic: &[u8], issuer: &X509Ref, now: UnixTime) -> Result<Vec<u8>, Failure> {
    let signed = Signed::from_der(basic)?;
    let data = signed.data.to_der()?;
    let signature = signed.signature.as_bytes().unwrap_or_default();
    let is_by = |signer: &X509Ref| {
        let key = signer.public_key();
        key.is_ok_and(|key| verifies(&key, signed.algorithm.oid, &data, signature).unwrap_or(false))
    };
    if accepted(signed.algorithm.oid).is_none() {
        return Err(Failure::unusable(format!(
            "its signature algorithm ({}) is not accepted",
            signed.algorithm.oid
        )));
    }
    if is_by(issuer) {
        return Ok(data);
    }
    let sent = signed.certificates.unwrap_or_default();
    let sent = sent.iter().take(MOST_SIGNERS).filter_map(|der| X509::from_der(&der.to_der().ok()?).ok());
    let mut charged = sent.filter(|signer| may_sign(signer, issuer, now));
    if charged.any(|signer| is_by(&signer)) {
        return Ok(data);
    }
    Err(Failure::unusable("it is signed neither by the issuer nor by an authorized responder"))
}

fn may_sign(signer: &X509Ref, issuer: &X509Ref, now: UnixTime) -> bool {
    let Ok(parsed) = parse(signer) else { return false };
    let parsed = parsed.tbs_certificate;
    let purposes = parsed.get::<ExtendedKeyUsage>().ok().flatten();
    let is_for_ocsp = purposes.is_some_and(|(_, purposes)| purposes.0.contains(&ID_KP_OCSP_SIGNING));
    let usage = parsed.get::<KeyUsage>();
    let signs = usage.is_ok_and(|usage| usage.is_none_or(|(_, usage)| usage.digital_signature()));
    let seconds =
        |time: &x509_cert::time::Time| i64::try_from(time.to_unix_duration().as_secs()).unwrap_or(i64::MAX);
    let holds = (seconds(&parsed.validity.not_before)..=seconds(&parsed.validity.not_after)).contains(&now);
    is_for_ocsp && signs && holds && has_issued(issuer, signer)
}

/// Returns the type of key and the hash of an accepted signature algorithm, with a hash that is not part of the
/// algorithm. SHA-1 is not accepted.
fn accepted(algorithm: ObjectIdentifier) -> Option<(Id, Option<MessageDigest>)> {
    let (sha256, sha384, sha512) =
        (MessageDigest::sha256(), MessageDigest::sha384(), MessageDigest::sha512());
    Some(match algorithm.to_string().as_str() {
        "1.2.840.113549.1.1.11" => (Id::RSA, Some(sha256)),
        "1.2.840.113549.1.1.12" => (Id::RSA, Some(sha384)),
        "1.2.840.113549.1.1.13" => (Id::RSA, Some(sha512)),
        "1.2.840.10045.4.3.2" => (Id::EC, Some(sha256)),
        "1.2.840.10045.4.3.3" => (Id::EC, Some(sha384)),
        "1.2.840.10045.4.3.4" => (Id::EC, Some(sha512)),
        "1.3.101.112" => (Id::ED25519, None),
        "2.16.840.1.101.3.4.3.17" => (Id::from_raw(ffi::EVP_PKEY_ML_DSA_44), None),
        "2.16.840.1.101.3.4.3.18" => (Id::from_raw(ffi::EVP_PKEY_ML_DSA_65), None),
        "2.16.840.1.101.3.4.3.19" => (Id::from_raw(ffi::EVP_PKEY_ML_DSA_87), None),
        _ => return None,
    })
}

fn verifies(
    key: &PKey<Public>,
    algorithm: ObjectIdentifier,
    data: &[u8],
    signature: &[u8],
) -> Result<bool, ErrorStack> {
    let Some((id, digest)) = accepted(algorithm) else { return Ok(false) };
    if id != key.id() {
        return Ok(false);
    }
    let mut verifier = match digest {
        Some(digest) => Verifier::new(digest, key)?,
        None => Verifier::new_without_digest(key)?,
    };
    verifier.verify_oneshot(signature, data)
}
