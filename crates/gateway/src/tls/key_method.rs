//! BoringSSL's private-key hooks, answered by the engine: the handshake pauses, the event loop goes on.

use super::{contained, turn};
use boring::{
    ex_data::Index,
    ssl::{
        AsyncPrivateKeyMethod, AsyncPrivateKeyMethodError, BoxPrivateKeyMethodFinish,
        BoxPrivateKeyMethodFuture, Ssl, SslRef, SslSignatureAlgorithm,
    },
};
use quadrille_engine::{
    Completion, Engine, Key, KeyType, Operation, OperationError, Outcome, SignatureScheme,
};
use std::{sync::LazyLock, time::Duration};

/// What the private-key operation of one handshake took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
}

static TIMING: LazyLock<Option<Index<Ssl, KeyTiming>>> = LazyLock::new(|| Ssl::new_ex_index().ok());

impl KeyTiming {
    /// The timing of this connection's handshake; `None` if it was resumed.
    pub(crate) fn of(ssl: &SslRef) -> Option<Self> {
        ssl.ex_data((*TIMING)?).copied()
    }
}

/// One certificate's key, as BoringSSL asks for it.
pub(super) struct EngineKey {
    pub(super) key: Key,
    pub(super) engine: Engine,
}

impl AsyncPrivateKeyMethod for EngineKey {
    fn sign(
        &self,
        _: &mut SslRef,
        input: &[u8],
        algorithm: SslSignatureAlgorithm,
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || {
            let scheme = code_point(algorithm).and_then(SignatureScheme::from_code_point);
            let scheme = scheme.ok_or(AsyncPrivateKeyMethodError)?;
            self.submit(Operation::sign(&self.key, scheme, input))
        })
    }

    fn decrypt(
        &self,
        _: &mut SslRef,
        input: &[u8],
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || self.submit(Operation::decrypt(&self.key, input)))
    }
}

impl EngineKey {
    fn submit(
        &self,
        operation: Result<Operation, OperationError>,
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        let completion = operation.and_then(|operation| self.engine.enqueue(&self.key, operation));
        let completion = completion.map_err(|_| AsyncPrivateKeyMethodError)?;
        turn::end_with_flush(&self.engine);
        Ok(Box::pin(finished(completion, self.key.key_type())))
    }
}

async fn finished(
    completion: Completion,
    key_type: KeyType,
) -> Result<BoxPrivateKeyMethodFinish, AsyncPrivateKeyMethodError> {
    let outcome = completion.await.map_err(|_| AsyncPrivateKeyMethodError)?;
    Ok(Box::new(move |ssl, output| hand_over(&outcome, key_type, ssl, output)))
}

fn hand_over(
    outcome: &Outcome,
    key_type: KeyType,
    ssl: &mut SslRef,
    output: &mut [u8],
) -> Result<usize, AsyncPrivateKeyMethodError> {
    let room = output.get_mut(..outcome.bytes.len()).ok_or(AsyncPrivateKeyMethodError)?;
    room.copy_from_slice(&outcome.bytes);
    if let Some(index) = *TIMING {
        let timing =
            KeyTiming { key_type, waited: outcome.waited, computed: outcome.computed, batch: outcome.batch };
        ssl.replace_ex_data(index, timing);
    }
    Ok(outcome.bytes.len())
}

/// The TLS code point behind BoringSSL's type, which does not show it.
fn code_point(algorithm: SslSignatureAlgorithm) -> Option<u16> {
    const KNOWN: [(SslSignatureAlgorithm, u16); 13] = [
        (SslSignatureAlgorithm::RSA_PKCS1_MD5_SHA1, 0xff01),
        (SslSignatureAlgorithm::RSA_PKCS1_SHA1, 0x0201),
        (SslSignatureAlgorithm::RSA_PKCS1_SHA256, 0x0401),
        (SslSignatureAlgorithm::RSA_PKCS1_SHA384, 0x0501),
        (SslSignatureAlgorithm::RSA_PKCS1_SHA512, 0x0601),
        (SslSignatureAlgorithm::RSA_PSS_RSAE_SHA256, 0x0804),
        (SslSignatureAlgorithm::RSA_PSS_RSAE_SHA384, 0x0805),
        (SslSignatureAlgorithm::RSA_PSS_RSAE_SHA512, 0x0806),
        (SslSignatureAlgorithm::ECDSA_SHA1, 0x0203),
        (SslSignatureAlgorithm::ECDSA_SECP256R1_SHA256, 0x0403),
        (SslSignatureAlgorithm::ECDSA_SECP384R1_SHA384, 0x0503),
        (SslSignatureAlgorithm::ECDSA_SECP521R1_SHA512, 0x0603),
        (SslSignatureAlgorithm::ED25519, 0x0807),
    ];
    KNOWN.iter().find(|(known, _)| *known == algorithm).map(|&(_, code)| code)
}
