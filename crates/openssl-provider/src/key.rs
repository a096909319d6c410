//! Keys, with local or remote private halves.

use crate::{
    batches, compute,
    error::{Failure, Reason},
    process::{PerProcess, on_own_stack},
    remote::RemoteKey,
    wait::{self, Answer, Outcome},
};
use boring::pkey::{PKey, PKeyRef, Private, Public};
use quadrille_engine::{Completion, Key, KeyType, Operation, PublicKey};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use zeroize::Zeroizing;

/// A key of this provider.
pub(crate) struct ProviderKey {
    public: PublicKey,
    private: PrivateHalf,
}

enum PrivateHalf {
    /// Public key only.
    Absent,
    Local(LocalKey),
    /// Private half on a key server of this machine, with an optional local copy for when no key server responds.
    Remote(RemoteKey, Option<LocalKey>),
}

/// A private key in this process. Each process that uses it has its own copy inside BoringSSL, with its own locks.
pub(crate) struct LocalKey {
    der: Zeroizing<Vec<u8>>,
    ready: PerProcess<Option<Key>>,
}

impl ProviderKey {
    pub(crate) fn public_only(pkey: PKey<Public>) -> Result<Self, Failure> {
        Ok(Self { public: PublicKey::from_pkey(pkey)?, private: PrivateHalf::Absent })
    }

    pub(crate) fn local(pkey: PKey<Private>) -> Result<Self, Failure> {
        let public = Key::from_pkey(pkey.clone())?.public().clone();
        if public.key_type() == KeyType::Ed25519 {
            return Err(Failure::new(Reason::UnsupportedKey, "it is neither RSA nor ECDSA"));
        }
        Ok(Self { public, private: PrivateHalf::Local(LocalKey::new(&pkey)?) })
    }

    /// # Errors
    /// If `fallback` is a different key.
    pub(crate) fn remote(
        public: PublicKey,
        remote: RemoteKey,
        fallback: Option<&PKeyRef<Private>>,
    ) -> Result<Self, Failure> {
        if fallback.is_some_and(|fallback| !fallback.public_eq(public.pkey())) {
            return Err(Failure::new(
                Reason::BadUri,
                "the key in `fallback` is not the private half of the one in `key`",
            ));
        }
        let fallback = fallback.map(LocalKey::new).transpose()?;
        Ok(Self { public, private: PrivateHalf::Remote(remote, fallback) })
    }

    pub(crate) fn public(&self) -> &PublicKey {
        &self.public
    }

    pub(crate) fn key_type(&self) -> KeyType {
        self.public.key_type()
    }

    pub(crate) fn has_private(&self) -> bool {
        !matches!(self.private, PrivateHalf::Absent)
    }

    /// Returns the secret from which implicit rejection derives its results: from the private key, or if that is
    /// remote, a random number of this process.
    pub(crate) fn rejection_secret(&self) -> Result<Zeroizing<[u8; 32]>, Failure> {
        static RANDOM: PerProcess<Zeroizing<[u8; 32]>> = PerProcess::new();
        match &self.private {
            PrivateHalf::Local(local) | PrivateHalf::Remote(_, Some(local)) => {
                Ok(Zeroizing::new(boring::sha::sha256(&local.der)))
            }
            _ => {
                let mut random = Zeroizing::new([0; 32]);
                boring::rand::rand_bytes(&mut *random)?;
                Ok(RANDOM.get(|| random).clone())
            }
        }
    }

    /// Computes an operation, and waits for it in the way that suits the caller. The result is verified with the
    /// public key.
    pub(crate) fn compute(&self, operation: Operation) -> Outcome {
        match &self.private {
            PrivateHalf::Absent => Err(Failure::new(Reason::NoPrivateKey, "this is a public key")),
            PrivateHalf::Local(local) => wait::for_answer(local.submit(operation)?),
            PrivateHalf::Remote(remote, None) => remote.compute(operation),
            PrivateHalf::Remote(remote, Some(local)) => match remote.compute(operation.clone()) {
                Err(failure) if failure.reason == Reason::KeyServer => {
                    wait::for_answer(local.submit(operation)?)
                }
                outcome => outcome,
            },
        }
    }
}

impl LocalKey {
    fn new(pkey: &PKeyRef<Private>) -> Result<Self, Failure> {
        Ok(Self { der: Zeroizing::new(pkey.private_key_to_der()?), ready: PerProcess::new() })
    }

    fn submit(&self, operation: Operation) -> Result<Answer, Failure> {
        let engine = compute::engine()?;
        let made = self.ready.get(|| {
            // BoringSSL checks the key, which takes more stack than a job has.
            on_own_stack(|| Key::from_pkey(PKey::private_key_from_der(&self.der).ok()?).ok()).ok().flatten()
        });
        let key = made.as_ref().ok_or(Reason::Internal)?;
        Ok(Box::pin(EngineAnswer(engine.submit(key, operation)?)))
    }
}

struct EngineAnswer(Completion);

impl Future for EngineAnswer {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        Pin::new(&mut self.0).poll(context).map(|done| {
            let done = done?;
            batches::note_last(done.batch);
            Ok(done.bytes)
        })
    }
}

/// A key shared between OpenSSL's objects.
pub(crate) type Shared = Arc<ProviderKey>;

impl From<quadrille_engine::KeyError> for Failure {
    fn from(error: quadrille_engine::KeyError) -> Self {
        Self::new(Reason::UnsupportedKey, error.to_string())
    }
}
