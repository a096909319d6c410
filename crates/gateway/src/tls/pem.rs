//! Certificates and private keys in PEM, from any source of the configuration.

use boring::x509::X509;
use quadrille_config::{
    Diagnostic, Problem,
    model::{Place, Source},
};
use quadrille_engine::Key;
use quadrille_pem::RevocationLists;
pub(crate) use quadrille_pem::unix_time;
use zeroize::Zeroizing;

/// Reads the entire content.
pub(super) fn read(source: &Source, place: &Place) -> Result<Zeroizing<Vec<u8>>, Diagnostic> {
    source.read().map_err(|error| Diagnostic::new(place, format!("cannot read {source}: {error}")))
}

/// Reads one or more certificates in PEM.
pub(crate) fn read_chain(source: &Source, place: &Place) -> Result<Vec<X509>, Diagnostic> {
    read_chain_and_text(source, place).map(|(chain, _)| chain)
}

/// Reads one or more certificates in PEM, and returns the text, too.
pub(super) fn read_chain_and_text(
    source: &Source,
    place: &Place,
) -> Result<(Vec<X509>, Zeroizing<Vec<u8>>), Diagnostic> {
    let pem = read(source, place)?;
    if pem.trim_ascii().is_empty() {
        return Err(Diagnostic::new(
            place,
            Problem::new(format!("{source} is empty"), "it should contain certificates in PEM"),
        ));
    }
    match quadrille_pem::certificates(&pem) {
        Ok(chain) if !chain.is_empty() => Ok((chain, pem)),
        Ok(_) => Err(Diagnostic::new(
            place,
            Problem::new(
                format!("{source} contains no certificate"),
                "it should contain a PEM block BEGIN CERTIFICATE",
            ),
        )),
        Err(damage) => Err(Diagnostic::new(
            place,
            format!("{source} is not valid PEM, or a certificate in it is damaged: {damage}"),
        )),
    }
}

/// Reads one or more certificate revocation lists in PEM.
pub(crate) fn read_crl(source: &Source, place: &Place) -> Result<RevocationLists, Diagnostic> {
    let pem = read(source, place)?;
    let unusable = |reason: String| Diagnostic::new(place, format!("{source}: {reason}"));
    match RevocationLists::read(&pem) {
        Ok(lists) if !lists.is_empty() => Ok(lists),
        Ok(_) => Err(unusable("contains no valid certificate revocation list in PEM".into())),
        Err(damage) => Err(unusable(format!("is damaged: {damage}"))),
    }
}

/// Largest number of CA certificates that are followed by name. Bundles of more, such as the system's, contain expired
/// ones.
const MOST_CAS: usize = 32;

/// Returns the common name and the expiry time of CA certificates, in Unix time.
pub(crate) fn expiries_of_cas(cas: &[X509]) -> Vec<(String, i64)> {
    let expiry = |ca: &X509| (quadrille_pem::common_name(ca.subject_name()), unix_time(ca.not_after()));
    if cas.len() > MOST_CAS { Vec::new() } else { cas.iter().map(expiry).collect() }
}

/// Reads a private key in PEM.
pub(crate) fn read_key(source: &Source, place: &Place) -> Result<Key, Diagnostic> {
    let pem = read(source, place)?;
    if pem.trim_ascii().is_empty() {
        return Err(Diagnostic::new(
            place,
            Problem::new(format!("{source} is empty"), "it should contain a private key in PEM"),
        ));
    }
    Key::from_pem(&pem).map_err(|error| Diagnostic::new(place, format!("{source}: {error}")))
}
