//! Public keys: validate operations and verify their results.

use crate::{KeyError, KeyType, ml_dsa};
use boring::{
    ec::EcKey,
    nid::Nid,
    pkey::{HasPublic, Id, PKey, PKeyRef, Public},
    rsa::Rsa,
};
use std::{fmt, sync::Arc};

/// Public half of a key, shared by all its users. If the private half is on another machine, only this half is
/// available.
#[derive(Clone)]
pub struct PublicKey(Arc<Inner>);

struct Inner {
    key_type: KeyType,
    pkey: PKey<Public>,
    material: PublicMaterial,
}

/// Key in the form required by its algorithm.
pub(crate) enum PublicMaterial {
    Rsa(Rsa<Public>),
    Ec(EcKey<Public>),
    Ed25519,
    MlDsa,
}

impl PublicKey {
    /// Creates a key from a parsed one, for instance from a certificate.
    ///
    /// # Errors
    /// [`KeyError::Unsupported`] and [`KeyError::RsaSize`] for keys without a supported operation.
    pub fn from_pkey(pkey: PKey<Public>) -> Result<Self, KeyError> {
        let (key_type, material) = classify(&pkey)?;
        Ok(Self(Arc::new(Inner { key_type, pkey, material })))
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.0.key_type
    }

    /// BoringSSL's key, for comparisons and encodings.
    pub fn pkey(&self) -> &PKeyRef<Public> {
        &self.0.pkey
    }

    pub(crate) fn material(&self) -> &PublicMaterial {
        &self.0.material
    }

    /// Extracts the public half of a key that may be private.
    pub(crate) fn from_public_half(pkey: &PKeyRef<impl HasPublic>) -> Result<Self, KeyError> {
        let der = pkey.public_key_to_der().map_err(|_| KeyError::Malformed)?;
        Self::from_pkey(PKey::public_key_from_der(&der).map_err(|_| KeyError::Malformed)?)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.key_type())
    }
}

fn classify(pkey: &PKeyRef<Public>) -> Result<(KeyType, PublicMaterial), KeyError> {
    match pkey.id() {
        Id::RSA => {
            let rsa = pkey.rsa().map_err(|_| KeyError::Malformed)?;
            match rsa.n().num_bits() {
                bits @ 1024..=8192 => {
                    Ok((KeyType::Rsa { bits: bits.unsigned_abs() }, PublicMaterial::Rsa(rsa)))
                }
                bits => Err(KeyError::RsaSize(bits.unsigned_abs())),
            }
        }
        Id::EC => {
            let ec = pkey.ec_key().map_err(|_| KeyError::Malformed)?;
            let key_type = match ec.group().curve_name() {
                Some(Nid::X9_62_PRIME256V1) => KeyType::EcdsaP256,
                Some(Nid::SECP384R1) => KeyType::EcdsaP384,
                Some(Nid::SECP521R1) => KeyType::EcdsaP521,
                _ => return Err(KeyError::Unsupported),
            };
            Ok((key_type, PublicMaterial::Ec(ec)))
        }
        Id::ED25519 => Ok((KeyType::Ed25519, PublicMaterial::Ed25519)),
        id => match ml_dsa::parameter_set(id) {
            Some(set) => Ok((KeyType::MlDsa(set), PublicMaterial::MlDsa)),
            None => Err(KeyError::Unsupported),
        },
    }
}
