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
    if !is_known(signed.algorithm.oid) {
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

/// An identifier, the type of the key, and the hash, unless it is part of the signature algorithm.
type Algorithm = (&'static str, Id, Option<fn() -> MessageDigest>);

/// Accepted signature algorithms. SHA-1 is not accepted.
const ALGORITHMS: [Algorithm; 7] = [
    ("1.2.840.113549.1.1.11", Id::RSA, Some(MessageDigest::sha256)),
    ("1.2.840.113549.1.1.12", Id::RSA, Some(MessageDigest::sha384)),
    ("1.2.840.113549.1.1.13", Id::RSA, Some(MessageDigest::sha512)),
    ("1.2.840.10045.4.3.2", Id::EC, Some(MessageDigest::sha256)),
    ("1.2.840.10045.4.3.3", Id::EC, Some(MessageDigest::sha384)),
    ("1.2.840.10045.4.3.4", Id::EC, Some(MessageDigest::sha512)),
    ("1.3.101.112", Id::ED25519, None),
];

fn is_known(algorithm: ObjectIdentifier) -> bool {
    let algorithm = algorithm.to_string();
    ALGORITHMS.iter().any(|(known, ..)| *known == algorithm)
}

fn verifies(
    key: &PKey<Public>,
    algorithm: ObjectIdentifier,
    data: &[u8],
    signature: &[u8],
) -> Result<bool, ErrorStack> {
    let algorithm = algorithm.to_string();
    let known = ALGORITHMS.iter().find(|(known, id, _)| *known == algorithm && *id == key.id());
    let Some((_, _, digest)) = known else { return Ok(false) };
    let mut verifier = match digest {
        Some(digest) => Verifier::new(digest(), key)?,
        None => Verifier::new_without_digest(key)?,
    };
    verifier.verify_oneshot(signature, data)
}
