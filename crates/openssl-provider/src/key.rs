//! Keys, with local or remote private halves.

use crate::{
    batches, compute,
    error::{Failure, Reason},
    host,
    process::{PerProcess, on_own_stack},
    remote::RemoteKey,
    rsa::decryption,
    wait::{self, Answer, Outcome},
};
use boring::pkey::{PKey, PKeyRef, Private, Public};
use quadrille_engine::{Completion, Key, KeyType, Operation, PublicKey};
use std::{
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use zeroize::Zeroizing;

/// A key of this provider.
pub(crate) struct ProviderKey {
    public: PublicKey,
    private: PrivateHalf,
    /// Secret of implicit rejection, once it is derived.
    rejection: PerProcess<OnceLock<Zeroizing<[u8; 32]>>>,
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
        Ok(Self::new(PublicKey::from_pkey(pkey)?, PrivateHalf::Absent))
    }

    pub(crate) fn local(pkey: PKey<Private>) -> Result<Self, Failure> {
        let public = Key::from_pkey(pkey.clone())?.public().clone();
        check_kind(public.key_type())?;
        Ok(Self::new(public, PrivateHalf::Local(LocalKey::new(&pkey)?)))
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
        Ok(Self::new(public, PrivateHalf::Remote(remote, fallback)))
    }

    fn new(public: PublicKey, private: PrivateHalf) -> Self {
        Self { public, private, rejection: PerProcess::new() }
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

    /// Derives the secret of implicit rejection from the private key, unless this process has done it: by decrypting a
    /// fixed number, which needs no other permission at a key server than the decryption that follows. So all
    /// processes have the same secret, whether the private key is theirs or a key server's. It may wait, and is
    /// called before the decryption, because no value that needs dropping is on the stack of a paused job.
    pub(crate) fn prepare_rejection(&self) -> Result<(), Failure> {
        let derived = self.rejection.get(OnceLock::new);
        if derived.get().is_none() {
            let result = self.compute(self.derivation()?)?;
            let _ = derived.set(Zeroizing::new(boring::sha::sha256(&result)));
        }
        Ok(())
    }

    fn derivation(&self) -> Result<Operation, Failure> {
        let public = self.public.pkey().public_key_to_der()?;
        let size = match self.key_type() {
            KeyType::Rsa { bits } => (bits as usize).div_ceil(8),
            _ => 0,
        };
        Ok(Operation::decrypt(&decryption::fixed_number(&public, size)?))
    }

    /// Returns the secret of implicit rejection, after [`prepare_rejection`](Self::prepare_rejection).
    pub(crate) fn rejection_secret(&self) -> Result<&[u8; 32], Failure> {
        let derived = self.rejection.get(OnceLock::new).get();
        derived.map(|secret| &**secret).ok_or_else(|| Reason::Internal.into())
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

/// Rejects keys of the kinds that this provider does not compute with.
pub(crate) fn check_kind(key: KeyType) -> Result<(), Failure> {
    match key {
        KeyType::Rsa { .. } | KeyType::EcdsaP256 | KeyType::EcdsaP384 | KeyType::EcdsaP521 => Ok(()),
        KeyType::Ed25519 => Err(Failure::new(Reason::UnsupportedKey, "it is neither RSA nor ECDSA")),
        KeyType::MlDsa(_) => {
            let openssl = host::current().and_then(|core| core.setting(c"openssl-version"));
            Err(Failure::new(Reason::UnsupportedKey, why_not_ml_dsa(openssl.as_deref().unwrap_or("3"))))
        }
    }
}

/// Returns the reason and the remedy for an ML-DSA key in OpenSSL of this version.
fn why_not_ml_dsa(openssl: &str) -> String {
    let mut numbers = openssl.split('.').map(|number| number.parse().unwrap_or(0));
    let version: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version < (3, 5) {
        format!(
            "it is an ML-DSA key, and libssl of OpenSSL {openssl} has no such signatures (3.5 and later have); \
             serve its certificate with quadrille serve"
        )
    } else {
        format!("it is an ML-DSA key, which OpenSSL {openssl} itself signs with: give it the key's file")
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

#[cfg(test)]
mod tests {
    use super::why_not_ml_dsa;

    #[test]
    fn the_version_of_openssl_decides_on_the_remedy() {
        for old in ["3.0.19", "3.4.1", "3"] {
            let said = why_not_ml_dsa(old);
            assert!(said.contains("no such signatures") && said.contains("quadrille serve"), "{said}");
        }
        for new in ["3.5.0", "3.10.2", "4.0.0"] {
            assert!(why_not_ml_dsa(new).contains("the key's file"), "{new}");
        }
    }
}
