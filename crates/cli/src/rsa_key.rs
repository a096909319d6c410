//! RSA keys for generated certificates; rcgen cannot generate RSA keys itself.

use boring::{pkey::PKey, rsa::Rsa};
use rcgen::KeyPair;
use std::error::Error;

/// Generates a key of this many bits.
pub(crate) fn generate(bits: u32) -> Result<KeyPair, Box<dyn Error>> {
    let pem = PKey::from_rsa(Rsa::generate(bits)?)?.private_key_to_pem_pkcs8()?;
    Ok(KeyPair::from_pem(&String::from_utf8(pem)?)?)
}
