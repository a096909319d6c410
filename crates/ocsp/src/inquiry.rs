//! OCSP request for a certificate.

use crate::Unaskable;
use boring::{
    hash::{MessageDigest, hash},
    x509::{X509, X509Ref},
};
use der::{
    Decode, Encode,
    asn1::{Null, ObjectIdentifier, OctetString},
};
use http::Uri;
use x509_cert::{
    Certificate,
    ext::pkix::{AuthorityInfoAccessSyntax, name::GeneralName},
    spki::AlgorithmIdentifierOwned,
};
use x509_ocsp::{CertId, OcspRequest, Request, TbsRequest};

const ID_AD_OCSP: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1");
/// The TLS feature extension (RFC 7633).
const ID_PE_TLS_FEATURE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.1.24");
/// Hash algorithm that every responder supports (RFC 5019 section 2.1.1). It serves as an identifier, not for
/// security.
const ID_SHA1: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.14.3.2.26");
/// `status_request` (RFC 6066 section 8).
const STATUS_REQUEST: u64 = 5;

/// A certificate whose status can be requested.
pub struct Inquiry {
    pub(crate) responder: Uri,
    pub(crate) id: CertId,
    pub(crate) issuer: X509,
    /// The OCSP request in DER.
    pub(crate) request: Vec<u8>,
}

impl Inquiry {
    /// Creates the request for the first certificate of a chain.
    ///
    /// # Errors
    /// Returns the reason for which its status cannot be requested.
    pub fn new(chain: &[X509]) -> Result<Self, Unaskable> {
        let leaf = chain.first().ok_or(Unaskable::NoResponder)?;
        let parsed = parse(leaf)?;
        let responder = responder(&parsed)?;
        let issuer = chain.get(1).filter(|issuer| has_issued(issuer, leaf)).ok_or(Unaskable::NoIssuer)?;
        let id = identify(&parsed, &parse(issuer)?)?;
        let request = Request { req_cert: id.clone(), single_request_extensions: None };
        let tbs_request = TbsRequest { request_list: vec![request], ..TbsRequest::default() };
        let request = OcspRequest { tbs_request, optional_signature: None };
        let request = request.to_der().map_err(|error| unreadable(&error))?;
        Ok(Self { responder, id, issuer: issuer.clone(), request })
    }

    /// Returns the URL of the responder.
    pub fn responder(&self) -> String {
        self.responder.to_string()
    }
}

/// Returns whether clients reject this certificate without a staple (RFC 7633).
pub fn must_be_stapled(leaf: &X509Ref) -> bool {
    let Ok(parsed) = parse(leaf) else { return false };
    let extensions = parsed.tbs_certificate.extensions.unwrap_or_default();
    let feature = extensions.iter().find(|extension| extension.extn_id == ID_PE_TLS_FEATURE);
    let features = feature.and_then(|feature| Vec::<u64>::from_der(feature.extn_value.as_bytes()).ok());
    features.is_some_and(|features| features.contains(&STATUS_REQUEST))
}

pub(crate) fn parse(certificate: &X509Ref) -> Result<Certificate, Unaskable> {
    let der = certificate.to_der().map_err(|error| Unaskable::Unreadable(error.to_string()))?;
    Certificate::from_der(&der).map_err(|error| unreadable(&error))
}

/// Returns whether `issuer` has issued the certificate, by name and signature.
pub(crate) fn has_issued(issuer: &X509Ref, certificate: &X509Ref) -> bool {
    let is_signed = || issuer.public_key().and_then(|key| certificate.verify(&key));
    issuer.issued(certificate) == Ok(()) && is_signed().unwrap_or(false)
}

fn responder(leaf: &Certificate) -> Result<Uri, Unaskable> {
    let access =
        leaf.tbs_certificate.get::<AuthorityInfoAccessSyntax>().map_err(|error| unreadable(&error))?;
    let addresses: Vec<_> = access
        .into_iter()
        .flat_map(|(_, access)| access.0)
        .filter(|description| description.access_method == ID_AD_OCSP)
        .filter_map(|description| match description.access_location {
            GeneralName::UniformResourceIdentifier(address) => Some(address.to_string()),
            _ => None,
        })
        .collect();
    let is_http = |uri: &Uri| uri.scheme_str() == Some("http") && uri.host().is_some();
    let usable = addresses.iter().filter_map(|address| address.parse().ok()).find(is_http);
    usable.ok_or_else(|| match addresses.into_iter().next() {
        Some(address) => Unaskable::Scheme(address),
        None => Unaskable::NoResponder,
    })
}

/// Returns the certificate ID (RFC 6960 section 4.1.1).
fn identify(leaf: &Certificate, issuer: &Certificate) -> Result<CertId, Unaskable> {
    let name = issuer.tbs_certificate.subject.to_der().map_err(|error| unreadable(&error))?;
    let key = issuer.tbs_certificate.subject_public_key_info.subject_public_key.raw_bytes();
    Ok(CertId {
        hash_algorithm: AlgorithmIdentifierOwned { oid: ID_SHA1, parameters: Some(Null.into()) },
        issuer_name_hash: sha1(&name)?,
        issuer_key_hash: sha1(key)?,
        serial_number: leaf.tbs_certificate.serial_number.clone(),
    })
}

fn sha1(bytes: &[u8]) -> Result<OctetString, Unaskable> {
    let digest =
        hash(MessageDigest::sha1(), bytes).map_err(|error| Unaskable::Unreadable(error.to_string()))?;
    OctetString::new(digest.to_vec()).map_err(|error| unreadable(&error))
}

fn unreadable(error: &der::Error) -> Unaskable {
    Unaskable::Unreadable(error.to_string())
}
