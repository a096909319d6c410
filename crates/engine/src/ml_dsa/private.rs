//! Private key of ML-DSA, whose parts belong together.

use super::library::LibraryKey;
use boring::{
    error::ErrorStack,
    pkey::{HasPrivate, Id, PKey, PKeyRef, Private},
    rand::rand_bytes,
};
use boring_sys as ffi;
use foreign_types::{ForeignType, ForeignTypeRef};
use quadrille_kernels::{Ceiling, Lanes, MlDsa, MlDsaKey};
use std::sync::OnceLock;
use zeroize::Zeroizing;

/// Private key with the values that lanes use. Its memory is cleared on drop.
pub(crate) struct MlDsaPrivate {
    key: MlDsaKey,
    /// Seed of the key, or the expanded key where the file has only that.
    encoded: Zeroizing<Vec<u8>>,
    library: OnceLock<Option<LibraryKey>>,
}

const SEED_BYTES: usize = 32;

impl MlDsaPrivate {
    /// `None` if BoringSSL, an independent implementation, computes another public key.
    pub(crate) fn from_seed(set: MlDsa, seed: &[u8; SEED_BYTES]) -> Option<Self> {
        let private = Self::new(Lanes::up_to(Ceiling::Portable).ml_dsa_key(set, seed), seed);
        let is_same = private.pkey().is_some_and(|pkey| {
            let mut public = vec![0; set.public_key_bytes()];
            pkey.raw_public_key(&mut public).is_ok_and(|public| public == private.key.public_key().encoded())
        });
        is_same.then_some(private)
    }

    /// `None` if its parts contradict each other.
    pub(crate) fn from_expanded(set: MlDsa, expanded: &[u8]) -> Option<Self> {
        let key = Lanes::up_to(Ceiling::Portable).ml_dsa_expanded_key(set, expanded)?;
        Some(Self::new(key, expanded))
    }

    /// Reads the seed of BoringSSL's key.
    pub(crate) fn from_pkey<T: HasPrivate>(pkey: &PKeyRef<T>) -> Option<Self> {
        let set = parameter_set(pkey.id())?;
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        let mut length = seed.len();
        // SAFETY: the key is live, and the buffer has the length that is passed.
        let ok = unsafe { ffi::EVP_PKEY_get_private_seed(pkey.as_ptr(), seed.as_mut_ptr(), &raw mut length) };
        if ok != 1 || length != seed.len() {
            drop(ErrorStack::get());
            return None;
        }
        Self::from_seed(set, &seed)
    }

    /// Generates a key; `None` without random numbers.
    pub(crate) fn generate(set: MlDsa) -> Option<Self> {
        let mut seed = Zeroizing::new([0; SEED_BYTES]);
        rand_bytes(&mut *seed).ok()?;
        Self::from_seed(set, &seed)
    }

    fn new(key: MlDsaKey, encoded: &[u8]) -> Self {
        Self { key, encoded: Zeroizing::new(encoded.to_vec()), library: OnceLock::new() }
    }

    pub(crate) fn key(&self) -> &MlDsaKey {
        &self.key
    }

    /// Returns whether the seed is known, without which BoringSSL does not sign.
    pub(crate) fn has_seed(&self) -> bool {
        self.encoded.len() == SEED_BYTES
    }

    /// Returns BoringSSL's key: of a key without its seed, the public half.
    pub(crate) fn pkey(&self) -> Option<PKey<Private>> {
        let (public, set) = (self.key.public_key().encoded(), self.key.public_key().parameter_set());
        // SAFETY: no preconditions.
        let algorithm = unsafe {
            match set {
                MlDsa::MlDsa44 => ffi::EVP_pkey_ml_dsa_44(),
                MlDsa::MlDsa65 => ffi::EVP_pkey_ml_dsa_65(),
                MlDsa::MlDsa87 => ffi::EVP_pkey_ml_dsa_87(),
            }
        };
        // SAFETY: the bytes are readable for their length, and the caller owns the new key.
        let pkey = unsafe {
            if self.has_seed() {
                ffi::EVP_PKEY_from_private_seed(algorithm, self.encoded.as_ptr(), self.encoded.len())
            } else {
                ffi::EVP_PKEY_from_raw_public_key(algorithm, public.as_ptr(), public.len())
            }
        };
        if pkey.is_null() {
            drop(ErrorStack::get());
            return None;
        }
        // SAFETY: it is a live key that has no other owner.
        Some(unsafe { PKey::from_ptr(pkey) })
    }

    /// Returns whether this is its expanded key.
    pub(super) fn expands_to(&self, expanded: &[u8]) -> bool {
        let computed = self.library().and_then(LibraryKey::expanded);
        computed.is_some_and(|computed| {
            computed.len() == expanded.len() && boring::memcmp::eq(&computed, expanded)
        })
    }

    /// Signs a message with an empty context, by AWS-LC. The signature is not verified.
    pub(crate) fn sign(&self, message: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        self.library()?.sign(message)
    }

    fn library(&self) -> Option<&LibraryKey> {
        let set = self.key.public_key().parameter_set();
        self.library.get_or_init(|| LibraryKey::new(set, &self.encoded)).as_ref()
    }
}

/// Returns the parameter set of BoringSSL's type of keys.
pub(crate) fn parameter_set(id: Id) -> Option<MlDsa> {
    match id.as_raw() {
        ffi::EVP_PKEY_ML_DSA_44 => Some(MlDsa::MlDsa44),
        ffi::EVP_PKEY_ML_DSA_65 => Some(MlDsa::MlDsa65),
        ffi::EVP_PKEY_ML_DSA_87 => Some(MlDsa::MlDsa87),
        _ => None,
    }
}
