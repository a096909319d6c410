//! BoringSSL's private-key hooks, answered by the engine: the handshake pauses, the event loop goes on.

use super::{contained, departure::unless_client_leaves};
use crate::tls::{certificate::PrivateKey, remote_key::Remote};
use boring::{
    error::ErrorStack,
    ex_data::Index,
    ssl::{
        AsyncPrivateKeyMethod, AsyncPrivateKeyMethodError, BoxPrivateKeyMethodFinish,
        BoxPrivateKeyMethodFuture, NameType, Ssl, SslRef, SslSignatureAlgorithm,
    },
};
use boring_sys as ffi;
use foreign_types::ForeignTypeRef;
use quadrille_engine::{
    BatchFlusher, Completion, Engine, Key, KeyType, Operation, OperationError, Outcome, PublicKey,
    SignatureScheme,
};
use quadrille_handshake_timing::key_operation;
use quadrille_keyless::client::{Answer, Failure, Origin};
use std::{
    future::Future,
    sync::{Arc, LazyLock, OnceLock},
    time::{Duration, Instant},
};
use tokio::net::TcpStream;

/// What the private-key operation of one handshake took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
    /// On compute threads.
    pub(crate) cpu: Duration,
}

/// Why there is no result.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyFailure {
    /// The client closed the connection while its operation waited.
    ClientLeft,
    /// Too many operations wait.
    Shed,
    /// The key is on key servers, and they have not computed it.
    Remote(Failure),
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

    /// For whom the operation is.
    fn origin(&self, ssl: &SslRef) -> Origin {
        Origin {
            sni: ssl.servername(NameType::HOST_NAME).map(str::to_owned),
            client: self.tcp.peer_addr().ok().map(|address| address.ip()),
            server: self.tcp.local_addr().ok().map(|address| address.ip()),
        }
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

impl From<Failure> for KeyFailure {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Full => Self::Shed,
            other => Self::Remote(other),
        }
    }
}

/// One certificate's key, as BoringSSL asks for it.
pub(super) struct EngineKey {
    pub(super) key: PrivateKey,
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
            self.submit(ssl, |key| Operation::sign(key, scheme, input))
        })
    }

    fn decrypt(
        &self,
        ssl: &mut SslRef,
        input: &[u8],
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || self.submit(ssl, |key| Operation::decrypt(key, input)))
    }
}

impl EngineKey {
    fn submit(
        &self,
        ssl: &SslRef,
        operation: impl FnOnce(&PublicKey) -> Result<Operation, OperationError>,
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        let connection = Arc::clone(KeyOperation::of(ssl).ok_or(AsyncPrivateKeyMethodError)?);
        let key_type = self.key.key_type();
        match &self.key {
            PrivateKey::Local(key) => {
                let operation = operation(key.public());
                let completion = operation.and_then(|operation| compute(&self.engine, key, operation));
                let completion = completion.map_err(|error| refuse(ssl, &connection, error.into()))?;
                Ok(Box::pin(finished(completion, key_type, connection)))
            }
            PrivateKey::Remote(remote) => {
                let operation = operation(remote.key.public());
                let operation = operation.map_err(|error| refuse(ssl, &connection, error.into()))?;
                let asked = self.ask(remote, operation, ssl, &connection);
                let computed = asked.map_err(|failure| refuse(ssl, &connection, failure.into()))?;
                Ok(Box::pin(finished(computed, key_type, connection)))
            }
        }
    }

    /// Asks key servers; and computes here what they do not, if the key is here as a last resort.
    fn ask(
        &self,
        remote: &Remote,
        operation: Operation,
        ssl: &SslRef,
        connection: &KeyOperation,
    ) -> Result<impl Future<Output = Result<Outcome, KeyFailure>> + use<>, Failure> {
        let fallback = remote.fallback.clone().map(|key| (self.engine.clone(), key, operation.clone()));
        let origin = if remote.client.wants_origin() { connection.origin(ssl) } else { Origin::default() };
        let answer = remote.client.submit(&remote.key, operation, origin, fallback.is_some())?;
        Ok(answered(answer, fallback))
    }
}

fn compute(engine: &Engine, key: &Key, operation: Operation) -> Result<Completion, OperationError> {
    let completion = key_operation(|| engine.enqueue(key, operation))?;
    if !completion.is_in_place() {
        BatchFlusher::schedule(engine);
    }
    Ok(completion)
}

async fn answered(answer: Answer, fallback: Option<(Engine, Key, Operation)>) -> Result<Outcome, KeyFailure> {
    let began = Instant::now();
    match (answer.await, fallback) {
        (Ok(bytes), _) => {
            // What the key server's CPU has done is in its own figures.
            let cpu = Duration::ZERO;
            Ok(Outcome { bytes, waited: Duration::ZERO, computed: began.elapsed(), batch: 1, cpu })
        }
        (Err(_), Some((engine, key, operation))) => {
            metrics::counter!("quadrille_keyless_fallbacks_total").increment(1);
            Ok(compute(&engine, &key, operation)?.await?)
        }
        (Err(failure), None) => Err(failure.into()),
    }
}

async fn finished<E: Into<KeyFailure>>(
    computation: impl Future<Output = Result<Outcome, E>>,
    key_type: KeyType,
    connection: Arc<KeyOperation>,
) -> Result<BoxPrivateKeyMethodFinish, AsyncPrivateKeyMethodError> {
    match unless_client_leaves(&connection.tcp, computation).await {
        Some(Ok(outcome)) => {
            Ok(Box::new(move |_, output| hand_over(&outcome, key_type, &connection, output)))
        }
        Some(Err(error)) => {
            let failure = error.into();
            Ok(Box::new(move |ssl, _| Err(refuse(ssl, &connection, failure))))
        }
        None => Err(connection.fail(KeyFailure::ClientLeft)),
    }
}

/// Tells the client that the handshake has failed: BoringSSL says nothing when a private key does. Called in its
/// callbacks only, where the connection can be written to.
fn refuse(ssl: &SslRef, connection: &KeyOperation, failure: KeyFailure) -> AsyncPrivateKeyMethodError {
    /// RFC 8446 section 6.2.
    const INTERNAL_ERROR: u8 = 80;
    // SAFETY: the connection is live and in its handshake, where BoringSSL sends alerts itself.
    unsafe { ffi::SSL_send_fatal_alert(ssl.as_ptr(), INTERNAL_ERROR) };
    // Whether it could be sent, and why not, is of no interest, and must not stay in the thread's error queue.
    drop(ErrorStack::get());
    connection.fail(failure)
}

fn hand_over(
    outcome: &Outcome,
    key_type: KeyType,
    connection: &KeyOperation,
    output: &mut [u8],
) -> Result<usize, AsyncPrivateKeyMethodError> {
    let room = output.get_mut(..outcome.bytes.len()).ok_or_else(|| connection.fail(KeyFailure::Failed))?;
    room.copy_from_slice(&outcome.bytes);
    let Outcome { waited, computed, batch, cpu, .. } = *outcome;
    let _ = connection.result.set(Ok(KeyTiming { key_type, waited, computed, batch, cpu }));
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
