//! A new key, and the request for its certificate (PKCS #10, RFC 2986).

use boring::{
    ec::{EcGroup, EcKey},
    error::ErrorStack,
    hash::MessageDigest,
    nid::Nid,
    pkey::{PKey, Private},
    rsa::Rsa,
    stack::Stack,
    x509::{X509Name, X509Req, extension::SubjectAlternativeName},
};
use quadrille_config::model::AcmeKeyType;
use std::net::IpAddr;

/// A new key. It takes a moment for RSA.
pub(crate) fn generate(key_type: AcmeKeyType) -> Result<PKey<Private>, ErrorStack> {
    let on_curve = |curve| PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(curve)?)?);
    match key_type {
        AcmeKeyType::EcdsaP256 => on_curve(Nid::X9_62_PRIME256V1),
        AcmeKeyType::EcdsaP384 => on_curve(Nid::SECP384R1),
        AcmeKeyType::Rsa2048 => PKey::from_rsa(Rsa::generate(2048)?),
        AcmeKeyType::Rsa3072 => PKey::from_rsa(Rsa::generate(3072)?),
        AcmeKeyType::Rsa4096 => PKey::from_rsa(Rsa::generate(4096)?),
    }
}

/// The request for a certificate of this key for these names, in DER.
pub(crate) fn request(key: &PKey<Private>, names: &[String]) -> Result<Vec<u8>, ErrorStack> {
    let mut builder = X509Req::builder()?;
    builder.set_version(0)?;
    builder.set_subject_name(&X509Name::builder()?.build())?;
    builder.set_pubkey(key)?;
    let mut alternatives = SubjectAlternativeName::new();
    for name in names {
        match name.parse::<IpAddr>() {
            Ok(_) => alternatives.ip(name),
            Err(_) => alternatives.dns(name),
        };
    }
    let mut extensions = Stack::new()?;
    extensions.push(alternatives.build(&builder.x509v3_context(None))?)?;
    builder.add_extensions(&extensions)?;
    builder.sign(key, MessageDigest::sha256())?;
    builder.build().to_der()
}
