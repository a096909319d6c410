//! Verification of an OCSP response before stapling: it has to be about this certificate, currently valid, and
//! signed.

use crate::{Failure, Inquiry, UnixTime, Validity, signature};
use der::{Decode, asn1::ObjectIdentifier};
use x509_ocsp::{
    BasicOcspResponse, CertId, CertStatus, OcspGeneralizedTime, OcspResponse, OcspResponseStatus,
    ResponseData, SingleResponse,
};

const ID_PKIX_OCSP_BASIC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.48.1.1");
/// Tolerated clock skew of responders, in seconds.
const SKEW: i64 = 300;

/// Status of a certificate.
pub(crate) struct Status {
    pub(crate) is_revoked: bool,
    pub(crate) validity: Validity,
}

/// Returns the status of the queried certificate in a response in DER.
///
/// # Errors
/// Returns an error if the response does not contain the status, or is not signed by an authorized signer.
pub(crate) fn check(response: &[u8], inquiry: &Inquiry, now: UnixTime) -> Result<Status, Failure> {
    let response = OcspResponse::from_der(response)?;
    if response.response_status != OcspResponseStatus::Successful {
        return Err(Failure::unusable(format!("its status is `{:?}`", response.response_status)));
    }
    let basic = response.response_bytes.filter(|bytes| bytes.response_type == ID_PKIX_OCSP_BASIC);
    let basic = basic.ok_or_else(|| Failure::unusable("it is of another type than id-pkix-ocsp-basic"))?;
    let data = signature::signed_data(basic.response.as_bytes(), &inquiry.issuer, now)?;
    let data = ResponseData::from_der(&data)?;
    let about = data.responses.iter().find(|single| is_same(&single.cert_id, &inquiry.id));
    let about = about.ok_or_else(|| Failure::unusable("it is about another certificate"))?;
    let validity = validity(about, now)?;
    match about.cert_status {
        CertStatus::Good(_) => Ok(Status { is_revoked: false, validity }),
        CertStatus::Revoked(_) => Ok(Status { is_revoked: true, validity }),
        CertStatus::Unknown(_) => Err(Failure::unusable("it reports the certificate as unknown")),
    }
}

/// Returns when the first status in a response expires, without verifying it; `None` if none expires.
///
/// # Errors
/// If it is not a response with the status of a certificate.
pub fn expiry(response: &[u8]) -> Result<Option<UnixTime>, Failure> {
    let response = OcspResponse::from_der(response)?;
    let bytes = response
        .response_bytes
        .ok_or_else(|| Failure::unusable(format!("its status is `{:?}`", response.response_status)))?;
    let basic = BasicOcspResponse::from_der(bytes.response.as_bytes())?;
    let statuses = basic.tbs_response_data.responses.iter();
    Ok(statuses.filter_map(|single| single.next_update.as_ref().map(unix_time)).min())
}

/// Compares certificate IDs. Parameters of the hash may be omitted (RFC 5754 section 2).
fn is_same(one: &CertId, other: &CertId) -> bool {
    let parts = |id: &CertId| {
        let hashes = (id.issuer_name_hash.clone(), id.issuer_key_hash.clone());
        (id.hash_algorithm.oid, hashes, id.serial_number.clone())
    };
    parts(one) == parts(other)
}

fn validity(single: &SingleResponse, now: UnixTime) -> Result<Validity, Failure> {
    let this_update = unix_time(&single.this_update);
    let next_update = single.next_update.as_ref().map(unix_time);
    let next_update = next_update.ok_or_else(|| Failure::unusable("it has no expiry (nextUpdate)"))?;
    if this_update > now + SKEW {
        return Err(Failure::unusable("it is not valid yet (thisUpdate); check this machine's clock"));
    }
    if next_update <= now || next_update <= this_update {
        return Err(Failure::unusable("it has expired (nextUpdate)"));
    }
    Ok(Validity { this_update, next_update })
}

fn unix_time(time: &OcspGeneralizedTime) -> UnixTime {
    i64::try_from(time.0.to_unix_duration().as_secs()).unwrap_or(i64::MAX)
}
