//! Key objects: empty, a public key, or a key pair.

use crate::{
    compute,
    error::{Failure, Reason},
    key_exchange::{group_key::GroupKey, turn::BYTES},
};
use quadrille_engine::{X25519KeyPair, x25519};
use std::ffi::CStr;
use zeroize::Zeroizing;

/// Key object held by OpenSSL.
#[derive(Clone, Default)]
pub(in crate::key_exchange) struct X25519Key {
    public: Option<[u8; BYTES]>,
    private: Option<Zeroizing<[u8; BYTES]>>,
}

impl X25519Key {
    pub(super) fn public_key(&self) -> Option<&[u8; BYTES]> {
        self.public.as_ref()
    }

    pub(super) fn private_key(&self) -> Option<&[u8; BYTES]> {
        self.private.as_deref()
    }
}

impl GroupKey for X25519Key {
    const NAME: &'static CStr = c"X25519";
    const BITS: usize = 253;
    const SECURITY_BITS: usize = 128;
    const MAX_SIZE: usize = BYTES;

    fn generate() -> Result<Self, Failure> {
        let pair = compute::engine()?.x25519_key_pair()?;
        let X25519KeyPair { private, public } = &*pair;
        Ok(Self { public: Some(*public), private: Some(Zeroizing::new(*private)) })
    }

    fn from_parts(private: Option<&[u8]>, public: Option<&[u8]>) -> Result<Self, Failure> {
        let public = public.map(fixed).transpose()?;
        let Some(private) = private else { return Ok(Self { public, private: None }) };
        let private = Zeroizing::new(fixed(private)?);
        let computed = x25519::public_key(&private);
        if public.is_some_and(|public| public != computed) {
            return Err(Failure::new(Reason::WrongInput, "the public key does not match the private key"));
        }
        Ok(Self { public: Some(computed), private: Some(private) })
    }

    fn set_public(&mut self, public: &[u8]) -> Result<(), Failure> {
        *self = Self { public: Some(fixed(public)?), private: None };
        Ok(())
    }

    fn public(&self) -> Option<&[u8]> {
        self.public.as_ref().map(<[u8; BYTES]>::as_slice)
    }

    fn private(&self) -> Option<&[u8]> {
        self.private.as_deref().map(<[u8; BYTES]>::as_slice)
    }
}

fn fixed(bytes: &[u8]) -> Result<[u8; BYTES], Failure> {
    let wrong = |_| Failure::new(Reason::WrongInput, format!("{} bytes, not {BYTES}", bytes.len()));
    bytes.try_into().map_err(wrong)
}
