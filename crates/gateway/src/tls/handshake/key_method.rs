//! BoringSSL's private-key callbacks, implemented by the engine: the handshake is suspended, the event loop
//! continues.

use super::{
    alert::{Alert, send_alert},
    client_disconnect::or_client_disconnect,
};
use crate::{
    connection::KeyTiming,
    tls::{
        certificate::files::PrivateKey,
        contained,
        handshake_state::{HandshakeState, KeyFailure},
        key::{
            key_overflow::{KeyOverflow, Spilled},
            remote_key::Remote,
        },
    },
};
use boring::ssl::{
    AsyncPrivateKeyMethod, AsyncPrivateKeyMethodError, BoxPrivateKeyMethodFinish, BoxPrivateKeyMethodFuture,
    NameType, SslRef, SslSignatureAlgorithm,
};
use quadrille_engine::{
    BatchFlusher, Completion, Engine, Key, KeyType, Operation, OperationError, Outcome, Priority,
    SignatureScheme, Zeroizing,
};
use quadrille_handshake_timing::key_operation;
use quadrille_keyless::client::{Answer, Failure, Origin};
use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

/// A certificate's key as BoringSSL's private-key method.
pub(crate) struct EngineKey {
    pub(crate) key: PrivateKey,
    pub(crate) engine: Engine,
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
            self.sign_with(ssl, scheme.ok_or(AsyncPrivateKeyMethodError)?, input)
        })
    }

    fn decrypt(
        &self,
        ssl: &mut SslRef,
        input: &[u8],
        _: &mut [u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        contained(Err(AsyncPrivateKeyMethodError), || self.submit(ssl, Ok(Operation::decrypt(input))))
    }
}

impl EngineKey {
    /// Starts a signature.
    pub(super) fn sign_with(
        &self,
        ssl: &SslRef,
        scheme: SignatureScheme,
        input: &[u8],
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        self.submit(ssl, Operation::sign(scheme, input))
    }

    fn submit(
        &self,
        ssl: &SslRef,
        operation: Result<Operation, OperationError>,
    ) -> Result<BoxPrivateKeyMethodFuture, AsyncPrivateKeyMethodError> {
        let handshake = HandshakeState::attached(ssl).ok_or(AsyncPrivateKeyMethodError)?;
        let key_type = self.key.key_type();
        let queued = self.key.is_here() && self.engine.queues(key_type);
        if handshake.visit.needs_key(key_type, queued).is_err() {
            return Err(refuse(ssl, handshake, KeyFailure::Shed));
        }
        let begun = operation.map_err(KeyFailure::from).and_then(|operation| match &self.key {
            PrivateKey::Local(key) => self.begin_here(key, operation, handshake),
            PrivateKey::Remote(remote) => self.begin_remote(remote, operation, ssl, handshake),
        });
        begun.map_err(|failure| refuse(ssl, handshake, failure))
    }

    fn begin_here(
        &self,
        key: &Key,
        operation: Operation,
        handshake: &Arc<HandshakeState>,
    ) -> Result<BoxPrivateKeyMethodFuture, KeyFailure> {
        let (visit, key_type) = (&handshake.visit, key.key_type());
        let priority = visit.priority();
        let queued = !key.is_external() && self.engine.queues(key_type);
        let pending = queued.then(|| visit.enter(key_type, priority));
        let completion = compute(&self.engine, priority, key, operation)?;
        let computation = async move {
            let _pending = pending;
            completion.await
        };
        Ok(Box::pin(finished(computation, key_type, Arc::clone(handshake))))
    }

    fn begin_remote(
        &self,
        remote: &Remote,
        operation: Operation,
        ssl: &SslRef,
        handshake: &Arc<HandshakeState>,
    ) -> Result<BoxPrivateKeyMethodFuture, KeyFailure> {
        operation.check(remote.key.public())?;
        match (&remote.overflow, &remote.fallback) {
            (Some(overflow), Some(key)) => match self.spill(overflow, &operation, handshake) {
                Some(spilled) => self.begin_spilled(spilled, remote, key, operation, ssl, handshake),
                None => self.begin_here(key, operation, handshake),
            },
            _ => {
                let computed = self.ask(remote, operation, ssl, handshake)?;
                Ok(Box::pin(finished(computed, remote.key.key_type(), Arc::clone(handshake))))
            }
        }
    }

    /// Sends the operation to key servers. Computes it here if they fail and the key is available as a fallback.
    fn ask(
        &self,
        remote: &Remote,
        operation: Operation,
        ssl: &SslRef,
        handshake: &HandshakeState,
    ) -> Result<impl Future<Output = Result<Outcome, KeyFailure>> + use<>, Failure> {
        let fallback = remote.fallback.clone().map(|key| (self.engine.clone(), key, operation.clone()));
        let origin = origin(remote, handshake, ssl);
        let answer = remote.client.submit(&remote.key, operation, origin, fallback.is_some())?;
        Ok(answered(answer, fallback))
    }

    /// Decides whether key servers compute an operation because it would be queued too long here. Decryption stays:
    /// few key servers allow it, and clients requesting it could make it appear that they had failed.
    fn spill(
        &self,
        overflow: &Arc<KeyOverflow>,
        operation: &Operation,
        handshake: &HandshakeState,
    ) -> Option<Spilled> {
        let can_go = matches!(operation, Operation::Sign { .. }) && self.engine.queues(self.key.key_type());
        if can_go { overflow.send(handshake.visit.key_wait()) } else { None }
    }

    /// Sends the operation to key servers. Computes it here, ahead of others, if they do not respond in time.
    fn begin_spilled(
        &self,
        spilled: Spilled,
        remote: &Remote,
        key: &Key,
        operation: Operation,
        ssl: &SslRef,
        handshake: &Arc<HandshakeState>,
    ) -> Result<BoxPrivateKeyMethodFuture, KeyFailure> {
        let origin = origin(remote, handshake, ssl);
        let Ok(answer) = remote.client.submit(&remote.key, operation.clone(), origin, true) else {
            spilled.failed();
            return self.begin_here(key, operation, handshake);
        };
        let key_type = key.key_type();
        handshake.visit.pass_by(key_type);
        let (engine, key, waiting) = (self.engine.clone(), key.clone(), Arc::clone(handshake));
        let computation = async move {
            let began = Instant::now();
            match spilled.result(answer).await {
                Some(bytes) => Ok(computed_elsewhere(bytes, began)),
                None => {
                    let _pending = waiting.visit.enter(key_type, Priority::Urgent);
                    compute(&engine, Priority::Urgent, &key, operation)?.await
                }
            }
        };
        Ok(Box::pin(finished(computation, key_type, Arc::clone(handshake))))
    }
}

fn compute(
    engine: &Engine,
    priority: Priority,
    key: &Key,
    operation: Operation,
) -> Result<Completion, OperationError> {
    let completion = key_operation(|| engine.enqueue_with(priority, key, operation))?;
    if completion.is_queued() {
        BatchFlusher::schedule(engine);
    }
    Ok(completion)
}

async fn answered(answer: Answer, fallback: Option<(Engine, Key, Operation)>) -> Result<Outcome, KeyFailure> {
    let began = Instant::now();
    match (answer.await, fallback) {
        (Ok(bytes), _) => Ok(computed_elsewhere(bytes, began)),
        (Err(_), Some((engine, key, operation))) => {
            metrics::counter!("quadrille_keyless_fallbacks_total").increment(1);
            Ok(compute(&engine, Priority::Normal, &key, operation)?.await?)
        }
        (Err(failure), None) => Err(failure.into()),
    }
}

/// Returns the outcome. The key server accounts for its CPU time in its own statistics.
fn computed_elsewhere(bytes: Zeroizing<Vec<u8>>, began: Instant) -> Outcome {
    let (waited, cpu) = (Duration::ZERO, Duration::ZERO);
    Outcome { bytes, waited, computed: began.elapsed(), batch: 1, cpu }
}

async fn finished<E: Into<KeyFailure>>(
    computation: impl Future<Output = Result<Outcome, E>>,
    key_type: KeyType,
    handshake: Arc<HandshakeState>,
) -> Result<BoxPrivateKeyMethodFinish, AsyncPrivateKeyMethodError> {
    handshake.visit.set_computing(true);
    let computed = or_client_disconnect(&handshake.peer, computation).await;
    handshake.visit.set_computing(false);
    match computed {
        Some(Ok(outcome)) => Ok(Box::new(move |_, output| hand_over(&outcome, key_type, &handshake, output))),
        Some(Err(error)) => {
            let failure = error.into();
            Ok(Box::new(move |ssl, _| Err(refuse(ssl, &handshake, failure))))
        }
        None => Err(fail(&handshake, KeyFailure::ClientLeft)),
    }
}

/// Returns the origin of the operation, if any key server requests it.
fn origin(remote: &Remote, handshake: &HandshakeState, ssl: &SslRef) -> Origin {
    if !remote.client.wants_origin() {
        return Origin::default();
    }
    let (client, server) = handshake.peer.addresses();
    Origin { sni: ssl.servername(NameType::HOST_NAME).map(str::to_owned), client, server }
}

fn fail(handshake: &HandshakeState, failure: KeyFailure) -> AsyncPrivateKeyMethodError {
    let _ = handshake.key.set(Err(failure));
    AsyncPrivateKeyMethodError
}

/// Sends an alert that the handshake has failed: BoringSSL sends none when a private-key operation fails.
fn refuse(ssl: &SslRef, handshake: &HandshakeState, failure: KeyFailure) -> AsyncPrivateKeyMethodError {
    send_alert(ssl, Alert::InternalError);
    fail(handshake, failure)
}

fn hand_over(
    outcome: &Outcome,
    key_type: KeyType,
    handshake: &HandshakeState,
    output: &mut [u8],
) -> Result<usize, AsyncPrivateKeyMethodError> {
    let room = output.get_mut(..outcome.bytes.len()).ok_or_else(|| fail(handshake, KeyFailure::Failed))?;
    room.copy_from_slice(&outcome.bytes);
    let Outcome { waited, computed, batch, cpu, .. } = *outcome;
    let _ = handshake.key.set(Ok(KeyTiming { key_type, waited, computed, batch, cpu, done: Instant::now() }));
    Ok(outcome.bytes.len())
}

/// Returns the TLS code point of BoringSSL's type, which does not expose it.
fn code_point(algorithm: SslSignatureAlgorithm) -> Option<u16> {
    const KNOWN: [(SslSignatureAlgorithm, u16); 16] = [
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
        (SslSignatureAlgorithm::ML_DSA_44, 0x0904),
        (SslSignatureAlgorithm::ML_DSA_65, 0x0905),
        (SslSignatureAlgorithm::ML_DSA_87, 0x0906),
    ];
    KNOWN.iter().find(|(known, _)| *known == algorithm).map(|&(_, code)| code)
}
