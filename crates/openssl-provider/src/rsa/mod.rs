//! RSA paddings (RFC 8017) for the raw operation that the engine computes.

pub(crate) mod decryption;
pub(crate) mod encryption;
mod pss;
pub(crate) mod signature;

use crate::error::{Failure, Reason};
use boring::{
    pkey::Public,
    rsa::{Padding, Rsa},
};
use quadrille_engine::PublicKey;

/// Converts the public half to BoringSSL's type.
pub(crate) fn public(key: &PublicKey) -> Result<Rsa<Public>, Failure> {
    key.pkey().rsa().map_err(|_| Failure::new(Reason::UnsupportedKey, "not an RSA key"))
}

/// Computes the raw public operation.
pub(crate) fn raw_public(rsa: &Rsa<Public>, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let mut output = vec![0; rsa.size() as usize];
    match rsa.public_encrypt(input, &mut output, Padding::NONE) {
        Ok(_) => Ok(output),
        Err(_) => Err(Failure::new(Reason::WrongInput, "it must be below the modulus and of equal length")),
    }
}
