//! Certificates and private keys in PEM, from wherever the configuration has them.

use boring::x509::X509;
use quadrille_config::{
    Diagnostic, Problem,
    model::{Place, Source},
};
use quadrille_engine::Key;
use zeroize::Zeroizing;

/// The whole content.
pub(super) fn read(source: &Source, place: &Place) -> Result<Zeroizing<Vec<u8>>, Diagnostic> {
    source.read().map_err(|error| Diagnostic::new(place, format!("cannot read {source}: {error}")))
}

/// Reads certificates in PEM, at least one.
pub(crate) fn read_chain(source: &Source, place: &Place) -> Result<Vec<X509>, Diagnostic> {
    let pem = read(source, place)?;
    if pem.trim_ascii().is_empty() {
        return Err(Diagnostic::new(
            place,
            Problem::new(format!("{source} is empty"), "it should hold certificates in PEM"),
        ));
    }
    match X509::stack_from_pem(&pem) {
        Ok(chain) if !chain.is_empty() => Ok(chain),
        Ok(_) => Err(Diagnostic::new(
            place,
            Problem::new(
                format!("{source} holds no certificate"),
                "it should have a PEM block BEGIN CERTIFICATE",
            ),
        )),
        Err(_) => Err(Diagnostic::new(
            place,
            format!("{source} is not valid PEM, or a certificate in it is damaged"),
        )),
    }
}

/// Reads a private key in PEM.
pub(crate) fn read_key(source: &Source, place: &Place) -> Result<Key, Diagnostic> {
    let pem = read(source, place)?;
    if pem.trim_ascii().is_empty() {
        return Err(Diagnostic::new(
            place,
            Problem::new(format!("{source} is empty"), "it should hold a private key in PEM"),
        ));
    }
    Key::from_pem(&pem).map_err(|error| Diagnostic::new(place, format!("{source}: {error}")))
}
