//! Private keys.

use crate::error::KeyError;
use boring::{
    ec::EcKey,
    nid::Nid,
    pkey::{Id, PKey, PKeyRef, Private},
    rsa::Rsa,
};
use std::{fmt, sync::Arc};

/// A private key, shared by all that use it. BoringSSL wipes its memory when the last of them is gone.
#[derive(Clone)]
pub struct Key(Arc<Inner>);

struct Inner {
    key_type: KeyType,
    pkey: PKey<Private>,
    material: Material,
}

/// The key in the form that its algorithm wants, taken out of the `PKey` once and not at each operation.
pub(crate) enum Material {
    Rsa(Rsa<Private>),
    Ec(EcKey<Private>),
    Ed25519,
}

/// Algorithm and size: operations of one type wait in one queue, whatever their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyType {
    /// RSA with a modulus of this many bits.
    Rsa {
        /// Length of the modulus.
        bits: u32,
    },
    /// ECDSA on P-256 (secp256r1).
    EcdsaP256,
    /// ECDSA on P-384 (secp384r1).
    EcdsaP384,
    /// ECDSA on P-521 (secp521r1).
    EcdsaP521,
    /// Ed25519.
    Ed25519,
}

impl Key {
    /// Reads the first private key of a PEM text: PKCS#8, PKCS#1 or SEC1, not encrypted.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let text = String::from_utf8_lossy(pem);
        if text.contains("-----BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED") {
            return Err(KeyError::Encrypted);
        }
        let has_key =
            text.lines().any(|line| line.starts_with("-----BEGIN ") && line.contains("PRIVATE KEY-----"));
        if !has_key {
            return Err(KeyError::Missing);
        }
        let pkey = PKey::private_key_from_pem(pem).map_err(|_| KeyError::Malformed)?;
        Self::from_pkey(pkey)
    }

    /// Takes over a key that was read elsewhere.
    pub fn from_pkey(pkey: PKey<Private>) -> Result<Self, KeyError> {
        let (key_type, material) = classify(&pkey)?;
        Ok(Self(Arc::new(Inner { key_type, pkey, material })))
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.0.key_type
    }

    /// For checking that a certificate belongs to this key.
    pub fn pkey(&self) -> &PKeyRef<Private> {
        &self.0.pkey
    }

    pub(crate) fn material(&self) -> &Material {
        &self.0.material
    }
}

impl KeyType {
    /// Length in bytes of an RSA modulus, and so of every raw RSA input and result.
    pub(crate) fn modulus_len(self) -> Option<usize> {
        match self {
            Self::Rsa { bits } => Some(bits.div_ceil(8) as usize),
            _ => None,
        }
    }
}

/// As metrics and logs name it: `rsa2048`, `ecdsa-p256`, `ed25519`.
impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rsa { bits } => write!(f, "rsa{bits}"),
            Self::EcdsaP256 => f.write_str("ecdsa-p256"),
            Self::EcdsaP384 => f.write_str("ecdsa-p384"),
            Self::EcdsaP521 => f.write_str("ecdsa-p521"),
            Self::Ed25519 => f.write_str("ed25519"),
        }
    }
}

/// Shows the type only, never the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.key_type())
    }
}

fn classify(pkey: &PKeyRef<Private>) -> Result<(KeyType, Material), KeyError> {
    match pkey.id() {
        Id::RSA => {
            let rsa = pkey.rsa().map_err(|_| KeyError::Malformed)?;
            match rsa.n().num_bits() {
                bits @ 1024..=8192 => Ok((KeyType::Rsa { bits: bits.unsigned_abs() }, Material::Rsa(rsa))),
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
            Ok((key_type, Material::Ec(ec)))
        }
        Id::ED25519 => Ok((KeyType::Ed25519, Material::Ed25519)),
        _ => Err(KeyError::Unsupported),
    }
}
