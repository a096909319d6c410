//! RSA keys for certificates that are made on the spot, which rcgen does not make by itself.

use boring::{pkey::PKey, rsa::Rsa};
use rcgen::KeyPair;
use std::error::Error;

/// A new key of so many bits.
pub(crate) fn generate(bits: u32) -> Result<KeyPair, Box<dyn Error>> {
    let pem = PKey::from_rsa(Rsa::generate(bits)?)?.private_key_to_pem_pkcs8()?;
    Ok(KeyPair::from_pem(&String::from_utf8(pem)?)?)
}
