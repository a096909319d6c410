//! The key objects: a public key, perhaps with its private one, or neither yet.

use crate::{
    compute,
    error::{Failure, Reason},
};
use quadrille_engine::{X25519KeyPair, x25519};
use zeroize::Zeroizing;

/// Length of keys and secrets.
pub(super) const BYTES: usize = 32;

/// What OpenSSL holds for a key. It is empty when it stands for the group alone.
#[derive(Clone, Default)]
pub(super) struct X25519Key {
    public: Option<[u8; BYTES]>,
    private: Option<Zeroizing<[u8; BYTES]>>,
}

impl X25519Key {
    /// A key pair that nobody else has.
    pub(super) fn generate() -> Result<Self, Failure> {
        let pair = compute::engine()?.x25519_key_pair().map_err(|error| failed(&error))?;
        let X25519KeyPair { private, public } = &*pair;
        Ok(Self { public: Some(*public), private: Some(Zeroizing::new(*private)) })
    }

    /// From a private key or a public one, or both, which must belong together.
    pub(super) fn from_parts(private: Option<&[u8]>, public: Option<&[u8]>) -> Result<Self, Failure> {
        let public = public.map(fixed).transpose()?;
        let Some(private) = private else { return Ok(Self { public, private: None }) };
        let private = Zeroizing::new(fixed(private)?);
        let computed = x25519::public_key(&private);
        if public.is_some_and(|public| public != computed) {
            return Err(Failure::new(Reason::WrongInput, "the public key is not that of the private key"));
        }
        Ok(Self { public: Some(computed), private: Some(private) })
    }

    pub(super) fn set_public(&mut self, public: &[u8]) -> Result<(), Failure> {
        *self = Self { public: Some(fixed(public)?), private: None };
        Ok(())
    }

    pub(super) fn public(&self) -> Option<&[u8; BYTES]> {
        self.public.as_ref()
    }

    pub(super) fn private(&self) -> Option<&[u8; BYTES]> {
        self.private.as_deref()
    }
}

fn fixed(bytes: &[u8]) -> Result<[u8; BYTES], Failure> {
    let wrong = |_| Failure::new(Reason::WrongInput, format!("{} bytes, not {BYTES}", bytes.len()));
    bytes.try_into().map_err(wrong)
}

fn failed(error: &quadrille_engine::OperationError) -> Failure {
    Failure::new(Reason::OperationFailed, error.to_string())
}
