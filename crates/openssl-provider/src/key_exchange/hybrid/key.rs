//! Key objects: a server has the client's public key, a client its own key pair.

use crate::{
    compute,
    error::{Failure, Reason},
    key_exchange::group_key::GroupKey,
    large_stack,
};
use quadrille_engine::{ClientShare, Group, MlKem768KeyPair, X25519KeyPair};
use std::{ffi::CStr, sync::Arc};
use zeroize::Zeroizing;

/// Lengths of public keys, ciphertexts and secrets.
const PUBLIC: usize = 1184 + 32;
pub(super) const CIPHERTEXT: usize = 1088 + 32;
pub(super) const SECRET: usize = 32 + 32;

/// Key object held by OpenSSL.
#[derive(Clone, Default)]
pub(in crate::key_exchange) struct HybridKey {
    public: Option<Arc<[u8; PUBLIC]>>,
    private: Option<Arc<Private>>,
}

/// A client's private key, used for one handshake and never exported.
pub(super) struct Private {
    pub(super) ml_kem: MlKem768KeyPair,
    pub(super) x25519: Zeroizing<X25519KeyPair>,
}

impl HybridKey {
    /// Returns the client's share to respond to.
    pub(super) fn share(&self) -> Option<ClientShare> {
        ClientShare::new(Group::X25519MlKem768, self.public.as_deref()?)
    }

    pub(super) fn private_key(&self) -> Option<&Arc<Private>> {
        self.private.as_ref()
    }
}

impl GroupKey for HybridKey {
    const NAME: &'static CStr = c"X25519MLKEM768";
    const BITS: usize = 8 * PUBLIC;
    const SECURITY_BITS: usize = 192;
    const MAX_SIZE: usize = CIPHERTEXT;

    fn generate() -> Result<Self, Failure> {
        let ml_kem = large_stack::run(MlKem768KeyPair::generate)??;
        let x25519 = compute::engine()?.x25519_key_pair()?;
        let mut public = [0; PUBLIC];
        let (first, second) = public.split_at_mut(ml_kem.public.len());
        first.copy_from_slice(&*ml_kem.public);
        second.copy_from_slice(&x25519.public);
        Ok(Self { public: Some(Arc::new(public)), private: Some(Arc::new(Private { ml_kem, x25519 })) })
    }

    /// Accepts only a public key: private ones belong to one handshake and one process.
    fn from_parts(private: Option<&[u8]>, public: Option<&[u8]>) -> Result<Self, Failure> {
        if private.is_some() {
            return Err(Failure::new(
                Reason::UnsupportedKey,
                "private keys of X25519MLKEM768 are not imported",
            ));
        }
        let mut key = Self::default();
        key.set_public(public.ok_or(Reason::MissingKey)?)?;
        Ok(key)
    }

    /// Rejects a key with an invalid ML-KEM part, so that libssl sends an `illegal_parameter` alert.
    fn set_public(&mut self, public: &[u8]) -> Result<(), Failure> {
        let wrong = |_| Failure::new(Reason::WrongInput, format!("{} bytes, not {PUBLIC}", public.len()));
        let key = Self { public: Some(Arc::new(public.try_into().map_err(wrong)?)), private: None };
        if !key.share().is_some_and(|share| share.is_reduced()) {
            return Err(Failure::new(Reason::WrongInput, "a coefficient of the ML-KEM key is not reduced"));
        }
        *self = key;
        Ok(())
    }

    fn public(&self) -> Option<&[u8]> {
        self.public.as_deref().map(<[u8; PUBLIC]>::as_slice)
    }

    fn private(&self) -> Option<&[u8]> {
        None
    }

    fn has_private(&self) -> bool {
        self.private.is_some()
    }
}
