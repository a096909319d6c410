//! BoringSSL's private-key hooks, answered by the engine: the handshake pauses, the event loop goes on.

use super::{contained, departure::unless_client_leaves, turn};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{
        AsyncPrivateKeyMethod, AsyncPrivateKeyMethodError, BoxPrivateKeyMethodFinish,
        BoxPrivateKeyMethodFuture, Ssl, SslRef, SslSignatureAlgorithm,
    },
};
use quadrille_engine::{
    Completion, Engine, Key, KeyType, Operation, OperationError, Outcome, SignatureScheme,
};
use std::{
    sync::{Arc, LazyLock, OnceLock},
    time::Duration,
};
use tokio::net::TcpStream;

/// What the private-key operation of one handshake took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyFailure {
    /// The client closed the connection while its operation waited.
    ClientLeft,
    /// Too many operations wait.
    Shed,
    /// Everything else; the client sent nonsense, or the engine has failed.
    Failed,
}

/// The private-key operation of one handshake, on its connection: what it needs to know, and what came of it.
pub(crate) struct KeyOperation {
    tcp: Arc<TcpStream>,
    result: OnceLock<Result<KeyTiming, KeyFailure>>,
}

static OPERATION: LazyLock<Option<Index<Ssl, Arc<KeyOperation>>>> =
    LazyLock::new(|| Ssl::new_ex_index().ok());

impl KeyOperation {
    /// Prepares a connection for its handshake.
    pub(crate) fn prepare(ssl: &mut SslRef, tcp: &Arc<TcpStream>) -> Result<(), ErrorStack> {
        let index = (*OPERATION).ok_or_else(ErrorStack::get)?;
        ssl.set_ex_data(index, Arc::new(Self { tcp: Arc::clone(tcp), result: OnceLock::new() }));
        Ok(())
    }

    /// What came of the operation; `None` if there was none, because the session was resumed or the handshake ended
    /// before.
    pub(crate) fn result(ssl: &SslRef) -> Option<Result<KeyTiming, KeyFailure>> {
        Self::of(ssl)?.result.get().copied()
    }

    fn of(ssl: &SslRef) -> Option<&Arc<Self>> {
        ssl.ex_data((*OPERATION)?)
    }

    fn fail(&self, failure: KeyFailure) -> AsyncPrivateKeyMethodError {
        let _ = self.result.set(Err(failure));
        AsyncPrivateKeyMethodError
    }
}

impl From<OperationError> for KeyFailure {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::QueueFull => Self::Shed,
            _ => Self::Failed,
        }
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
        ssl: &mut SslRef,
        input: &[u8],
        algorithm: SslSignatureAlgorithm,
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || {
            let scheme = code_point(algorithm).and_then(SignatureScheme::from_code_point);
            let scheme = scheme.ok_or(AsyncPrivateKeyMethodError)?;
            self.submit(ssl, Operation::sign(&self.key, scheme, input))
        })
    }

    fn decrypt(
        &self,
        ssl: &mut SslRef,
        input: &[u8],
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || self.submit(ssl, Operation::decrypt(&self.key, input)))
    }
}

impl EngineKey {
    fn submit(
        &self,
        ssl: &SslRef,
        operation: Result<Operation, OperationError>,
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        let connection = Arc::clone(KeyOperation::of(ssl).ok_or(AsyncPrivateKeyMethodError)?);
        let completion = operation.and_then(|operation| self.engine.enqueue(&self.key, operation));
        let completion = completion.map_err(|error| connection.fail(error.into()))?;
        if !completion.is_in_place() {
            turn::end_with_flush(&self.engine);
        }
        Ok(Box::pin(finished(completion, self.key.key_type(), connection)))
    }
}

async fn finished(
    completion: Completion,
    key_type: KeyType,
    connection: Arc<KeyOperation>,
) -> Result<BoxPrivateKeyMethodFinish, AsyncPrivateKeyMethodError> {
    match unless_client_leaves(&connection.tcp, completion).await {
        Some(Ok(outcome)) => {
            Ok(Box::new(move |_, output| hand_over(&outcome, key_type, &connection, output)))
        }
        Some(Err(error)) => Err(connection.fail(error.into())),
        None => Err(connection.fail(KeyFailure::ClientLeft)),
    }
}

fn hand_over(
    outcome: &Outcome,
    key_type: KeyType,
    connection: &KeyOperation,
    output: &mut [u8],
) -> Result<usize, AsyncPrivateKeyMethodError> {
    let room = output.get_mut(..outcome.bytes.len()).ok_or_else(|| connection.fail(KeyFailure::Failed))?;
    room.copy_from_slice(&outcome.bytes);
    let Outcome { waited, computed, batch, .. } = *outcome;
    let _ = connection.result.set(Ok(KeyTiming { key_type, waited, computed, batch }));
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
