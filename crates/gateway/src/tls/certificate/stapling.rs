//! Selection of the certificates whose OCSP responses are fetched for stapling.

use super::files::Certificate;
use boring::sha::Sha256;
use quadrille_config::model::OcspStapling;
use quadrille_ocsp::{Inquiry, Staple, Unaskable};
use std::path::Path;

/// Returns whether an OCSP response is fetched for a certificate. A response from a file is not replaced, and some
/// certificates that do not require stapling have no responder.
pub(crate) fn is_wanted(certificate: &Certificate, stapling: OcspStapling) -> bool {
    let is_wanted = match stapling {
        OcspStapling::Off => false,
        OcspStapling::MustStaple => certificate.must_be_stapled,
        OcspStapling::On => certificate.must_be_stapled || certificate.has_responder,
    };
    is_wanted && certificate.ocsp.is_none()
}

/// Returns an identifier of the fetched response.
pub(crate) fn identity(certificate: &Certificate) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // A certificate that cannot be encoded cannot be served, either.
    certificate
        .chain
        .iter()
        .take(2)
        .filter_map(|link| link.to_der().ok())
        .for_each(|der| hasher.update(&der));
    hasher.finish()
}

/// Creates an empty staple, or restores the one that a previous process left in the state directory.
///
/// # Errors
/// Returns an error if the response cannot be requested.
pub(crate) fn new(
    certificate: &Certificate,
    identity: &[u8; 32],
    state: Option<&Path>,
) -> Result<Staple, Unaskable> {
    let title = format!("{} ({})", certificate.names.join(", "), certificate.key.key_type());
    let staple = Staple::new(Inquiry::new(&certificate.chain)?, title, certificate.must_be_stapled);
    let name: String = identity.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(match state {
        Some(state) => staple.kept_in(state.join("ocsp").join(format!("{name}.der"))),
        None => staple,
    })
}

/// Returns a warning about a certificate without a stapled response.
pub(crate) fn warning(certificate: &Certificate, unaskable: Option<&Unaskable>) -> Option<String> {
    let (names, required) = (certificate.names.join(", "), certificate.must_be_stapled);
    let refused = "clients reject it without an OCSP response (RFC 7633)";
    match unaskable {
        Some(reason) if required => Some(format!("the certificate for {names}: {refused}, and {reason}")),
        Some(reason) => Some(format!("no OCSP response is stapled to the certificate for {names}: {reason}")),
        None if required && certificate.ocsp.is_none() => Some(format!(
            "the certificate for {names}: {refused}, and none is fetched with `ocsp_stapling: off`"
        )),
        None => None,
    }
}
