//! For which certificates OCSP responses are fetched, to be stapled.

use super::certificate::Certificate;
use boring::sha::Sha256;
use quadrille_config::model::OcspStapling;
use quadrille_ocsp::{Inquiry, Staple, Unaskable};
use std::path::Path;

/// Whether anything is to be fetched for a certificate. What a file says is left as it is, and of those that need not be
/// stapled some have no responder.
pub(crate) fn is_wanted(certificate: &Certificate, stapling: OcspStapling) -> bool {
    let is_wanted = match stapling {
        OcspStapling::Off => false,
        OcspStapling::MustStaple => certificate.must_be_stapled,
        OcspStapling::On => certificate.must_be_stapled || certificate.has_responder,
    };
    is_wanted && certificate.ocsp.is_none()
}

/// Tells apart what is fetched.
pub(crate) fn identity(certificate: &Certificate) -> [u8; 32] {
    let mut hasher = Sha256::new();
    // Whoever cannot be encoded cannot be served, either.
    certificate
        .chain
        .iter()
        .take(2)
        .filter_map(|link| link.to_der().ok())
        .for_each(|der| hasher.update(&der));
    hasher.finish()
}

/// Nothing yet, or what a process before has left under this name in the state directory.
///
/// # Errors
/// Nobody can be asked.
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

/// What a user should know of a certificate to which nothing will be stapled.
pub(crate) fn warning(certificate: &Certificate, unaskable: Option<&Unaskable>) -> Option<String> {
    let (names, required) = (certificate.names.join(", "), certificate.must_be_stapled);
    let refused = "clients refuse it without an OCSP response (RFC 7633)";
    match unaskable {
        Some(reason) if required => Some(format!("the certificate for {names}: {refused}, and {reason}")),
        Some(reason) => Some(format!("no OCSP response is stapled to the certificate for {names}: {reason}")),
        None if required && certificate.ocsp.is_none() => Some(format!(
            "the certificate for {names}: {refused}, and none is fetched with `ocsp_stapling: off`"
        )),
        None => None,
    }
}
