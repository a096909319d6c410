//! Private keys.

use crate::{
    ExternalKey, KeyType, PublicKey,
    error::KeyError,
    key_form,
    ml_dsa::{self, MlDsaPrivate},
    prepared::Prepared,
};
use boring::{
    ec::{EcGroup, EcKey},
    error::{Error, ErrorStack},
    nid::Nid,
    pkey::{Id, PKey, PKeyRef, Private},
    rsa::Rsa,
};
use boring_sys as ffi;
use foreign_types::ForeignType;
use quadrille_pem::Block;
use std::{any::Any, fmt, sync::Arc, time::Duration};

/// Private key, shared by all its users. BoringSSL wipes its memory when the last reference is dropped.
#[derive(Clone)]
pub struct Key {
    inner: Arc<Inner>,
    poll_delay: Option<Duration>,
}

struct Inner {
    public: PublicKey,
    pkey: PKey<Private>,
    material: Material,
    prepared: Prepared,
}

/// Key in the form required by its algorithm, extracted from the `PKey` once rather than at each operation.
pub(crate) enum Material {
    Rsa(Rsa<Private>),
    Ec(EcKey<Private>),
    Ed25519,
    MlDsa(Box<MlDsaPrivate>),
    /// Outside this process's memory.
    External(Arc<dyn ExternalKey>),
}

impl Key {
    /// Reads the first private key of a PEM text: PKCS#8 of version 1 or 2, PKCS#1 or SEC1, not encrypted; ML-DSA with
    /// its seed, expanded, or both (RFC 9881 section 6). Blocks of other kinds, such as certificates, are ignored; beside
    /// a key, they may not be damaged.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let damaged = |_| if contains(pem, END_OF_KEY) { KeyError::Malformed } else { KeyError::Missing };
        let blocks = quadrille_pem::blocks(pem).map_err(damaged)?;
        let is_key = |block: &&Block<'_>| block.label.ends_with(PRIVATE_KEY);
        let block = blocks.iter().find(is_key).ok_or(KeyError::Missing)?;
        if block.encrypted || block.label == ENCRYPTED {
            return Err(KeyError::Encrypted);
        }
        if let Some(private) = ml_dsa::read(&block.contents) {
            return Self::from_ml_dsa(private?);
        }
        let named = |error| key_form::unsupported_curve(&block.contents).unwrap_or(error);
        let pkey = match key_form::version_1(&block.contents) {
            Some(converted) => PKey::private_key_from_pkcs8(&converted),
            None => PKey::private_key_from_pem(block.text),
        };
        Self::from_pkey(pkey.map_err(|errors| named(reason(&errors)))?).map_err(named)
    }

    /// Creates a key from a parsed `PKey`.
    pub fn from_pkey(pkey: PKey<Private>) -> Result<Self, KeyError> {
        let material = material(&pkey)?;
        Self::new(pkey, material)
    }

    /// Creates a key with a private half that is outside this process's memory.
    pub fn external(public: PublicKey, private: Arc<dyn ExternalKey>) -> Self {
        // SAFETY: the key is live, and its owner passes on ownership. BoringSSL represents public and private keys
        // alike, and its operations fail on one without a private half.
        let pkey = unsafe { PKey::from_ptr(public.pkey().to_owned().into_ptr()) };
        let material = Material::External(private);
        Self {
            inner: Arc::new(Inner { public, pkey, material, prepared: Prepared::default() }),
            poll_delay: None,
        }
    }

    fn from_ml_dsa(private: MlDsaPrivate) -> Result<Self, KeyError> {
        let pkey = private.pkey().ok_or(KeyError::Malformed)?;
        Self::new(pkey, Material::MlDsa(Box::new(private)))
    }

    fn new(pkey: PKey<Private>, material: Material) -> Result<Self, KeyError> {
        let public = PublicKey::from_public_half(&pkey)?;
        let inner = Inner { public, pkey, material, prepared: Prepared::default() };
        Ok(Self { inner: Arc::new(inner), poll_delay: None })
    }

    /// Generates a key from BoringSSL's random numbers. Long RSA keys take a second or more of CPU.
    ///
    /// # Errors
    /// [`Unsupported`](KeyError::Unsupported) for Ed25519, which public CAs do not certify, and
    /// [`Malformed`](KeyError::Malformed) if BoringSSL generates no key.
    pub fn generate(key_type: KeyType) -> Result<Self, KeyError> {
        let on_curve = |curve| PKey::from_ec_key(EcKey::generate(&*EcGroup::from_curve_name(curve)?)?);
        let pkey = match key_type {
            KeyType::Rsa { bits } => Rsa::generate(bits).and_then(PKey::from_rsa),
            KeyType::EcdsaP256 => on_curve(Nid::X9_62_PRIME256V1),
            KeyType::EcdsaP384 => on_curve(Nid::SECP384R1),
            KeyType::EcdsaP521 => on_curve(Nid::SECP521R1),
            KeyType::Ed25519 => return Err(KeyError::Unsupported),
            KeyType::MlDsa(set) => {
                return Self::from_ml_dsa(MlDsaPrivate::generate(set).ok_or(KeyError::Malformed)?);
            }
        };
        Self::from_pkey(pkey.map_err(|_| KeyError::Malformed)?)
    }

    /// Returns the key with its own delay for a batch to fill; zero never waits. `None`, the default, applies
    /// [`Policy::poll_delay`](crate::Policy).
    #[must_use]
    pub fn with_poll_delay(self, poll_delay: Option<Duration>) -> Self {
        Self { poll_delay, ..self }
    }

    /// Delay for a batch to fill, if this key has its own.
    pub(crate) fn poll_delay(&self) -> Option<Duration> {
        self.poll_delay
    }

    /// Algorithm and size.
    pub fn key_type(&self) -> KeyType {
        self.inner.public.key_type()
    }

    /// Public half.
    pub fn public(&self) -> &PublicKey {
        &self.inner.public
    }

    /// Returns whether the private half is outside this process's memory. Its operations do not enter the engine's
    /// queues.
    pub fn is_external(&self) -> bool {
        self.as_external().is_some()
    }

    pub(crate) fn as_external(&self) -> Option<&Arc<dyn ExternalKey>> {
        match self.material() {
            Material::External(private) => Some(private),
            _ => None,
        }
    }

    /// BoringSSL's key, for checking that a certificate belongs to it. That of an external key, and that of an ML-DSA key
    /// without its seed, have only the public half.
    pub fn pkey(&self) -> &PKeyRef<Private> {
        &self.inner.pkey
    }

    /// BoringSSL's key, for connections whose signatures the engine does not compute.
    ///
    /// # Errors
    /// [`WithoutSeed`](KeyError::WithoutSeed) for an ML-DSA key without its seed, [`External`](KeyError::External) for a
    /// key outside this process's memory.
    pub fn for_connections(&self) -> Result<&PKeyRef<Private>, KeyError> {
        match self.material() {
            Material::MlDsa(private) if !private.has_seed() => {
                Err(KeyError::WithoutSeed(ml_dsa::name(private.key().public_key().parameter_set())))
            }
            Material::External(_) => Err(KeyError::External),
            _ => Ok(self.pkey()),
        }
    }

    /// Value of type `T` that a backend computes once from this key; the first caller's `prepare` makes it. It is
    /// dropped with the key; `T` must wipe its own secrets.
    pub fn prepared<T: Any + Send + Sync>(&self, prepare: impl Fn() -> T) -> &T {
        self.inner.prepared.get_or_prepare(&prepare)
    }

    pub(crate) fn material(&self) -> &Material {
        &self.inner.material
    }
}

/// Shows the type only, never the key.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.key_type())
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

/// End of a line that begins or ends a private key.
const END_OF_KEY: &[u8] = b"PRIVATE KEY-----";

/// End of the label of a private key: `PRIVATE KEY`, `RSA PRIVATE KEY`, `EC PRIVATE KEY` (RFC 7468 section 10, RFC 5915).
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Label of an encrypted PKCS#8 key (RFC 7468 section 11).
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";

/// Distinguishes an unsupported key type from malformed input.
fn reason(errors: &ErrorStack) -> KeyError {
    const KINDS: [(ffi::ErrLib, i32); 2] =
        [(ffi::ERR_LIB_EVP, ffi::EVP_R_UNSUPPORTED_ALGORITHM), (ffi::ERR_LIB_EC, ffi::EC_R_UNKNOWN_GROUP)];
    let is_kind = |error: &Error| KINDS.iter().any(|&(lib, code)| error.library_reason(lib) == Some(code));
    if errors.errors().iter().any(is_kind) { KeyError::Unsupported } else { KeyError::Malformed }
}

/// Extracts the material of a key with a supported type.
fn material(pkey: &PKeyRef<Private>) -> Result<Material, KeyError> {
    match pkey.id() {
        Id::RSA => pkey.rsa().map(Material::Rsa),
        Id::EC => pkey.ec_key().map(Material::Ec),
        id if ml_dsa::parameter_set(id).is_some() => {
            let private = MlDsaPrivate::from_pkey(pkey).ok_or(KeyError::Malformed)?;
            return Ok(Material::MlDsa(Box::new(private)));
        }
        _ => Ok(Material::Ed25519),
    }
    .map_err(|_| KeyError::Malformed)
}
