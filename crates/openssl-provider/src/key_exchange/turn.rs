//! Batches of key exchange operations from several handshakes of an event loop.
//!
//! Each handshake in a job submits its operation, notifies its server that it can be resumed, and is paused. Before
//! the server resumes it, the server calls for all submitted operations to be computed on the server's own stack:
//! that of a job is too small for lanes. No other thread is involved, because one operation costs less than two
//! thread switches.

use crate::{
    compute,
    error::{Failure, Reason},
    large_stack,
    wait::{self, Outcome},
};
use quadrille_engine::{ClientShare, Engine, ExchangeError, SecretOperation, ServerShare, x25519};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use zeroize::Zeroizing;

/// Length of X25519 keys and secrets.
pub(super) const BYTES: usize = 32;

type Secret = Zeroizing<[u8; BYTES]>;

/// Number of operations computed immediately after a turn with too few operations for lanes, before another turn is
/// tried.
const AT_ONCE: u32 = 16;

thread_local! {
    /// Whether the server's module computes turns in this thread.
    static HAS_TURNS: Cell<bool> = const { Cell::new(false) };
    static WAITING: RefCell<Vec<Arc<Operation>>> = const { RefCell::new(Vec::new()) };
    /// Number of operations still to be computed immediately.
    static LEFT_AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// An operation that waits to be batched.
struct Operation {
    task: Task,
    outcome: OnceLock<Outcome>,
}

enum Task {
    /// Computes the shared secret of a private key and the peer's public key.
    Secret { private: Secret, peer: [u8; BYTES] },
    /// Computes the response to a client's share: the server's share followed by the secret.
    Answer(ClientShare),
}

/// Computes the shared secret of a private key and the peer's public key, batched with other handshakes if lanes pay
/// off and the server computes turns.
pub(super) fn secret(private: &[u8; BYTES], peer: &[u8; BYTES]) -> Result<Secret, Failure> {
    if !waits()? {
        return x25519::secret(private, peer).ok_or_else(small_order);
    }
    let outcome = in_turn(Task::Secret { private: Zeroizing::new(*private), peer: *peer })?;
    let mut secret = Zeroizing::new([0; BYTES]);
    secret.copy_from_slice(&outcome);
    Ok(secret)
}

/// Computes the response to a client's share, followed by the secret. It is batched likewise.
pub(super) fn answer(share: ClientShare) -> Outcome {
    let task = Task::Answer(share);
    if waits()? { in_turn(task) } else { task.compute() }
}

fn waits() -> Result<bool, Failure> {
    Ok(HAS_TURNS.get() && wait::can_pause() && lanes_pay()? && !is_at_once())
}

fn lanes_pay() -> Result<bool, Failure> {
    Ok(compute::engine()?.x25519_batching().crossover != usize::MAX)
}

/// Returns whether to compute immediately: the last turn was too small, and the next one is not due yet.
fn is_at_once() -> bool {
    let left = LEFT_AT_ONCE.get();
    LEFT_AT_ONCE.set(left.saturating_sub(1));
    left > 0
}

fn small_order() -> Failure {
    Failure::new(Reason::OperationFailed, "the peer's key is a point of small order")
}

fn in_turn(task: Task) -> Outcome {
    let operation = Arc::new(Operation { task, outcome: OnceLock::new() });
    wait::for_answer(Box::pin(InTurn { operation, handed_in: false }))
}

/// A future that submits its operation when first polled, and is ready when polled again.
struct InTurn {
    operation: Arc<Operation>,
    handed_in: bool,
}

impl Future for InTurn {
    type Output = Outcome;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Outcome> {
        if !self.handed_in {
            self.handed_in = true;
            WAITING.with_borrow_mut(|waiting| waiting.push(Arc::clone(&self.operation)));
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let Operation { task, outcome } = &*self.operation;
        // `None` if the job was resumed before the turn was computed.
        Poll::Ready(outcome.get().cloned().unwrap_or_else(|| task.compute()))
    }
}

impl Task {
    /// Computes this operation immediately and alone.
    fn compute(&self) -> Outcome {
        match self {
            Self::Secret { private, peer } => {
                x25519::secret(private, peer).map(|secret| bytes(&secret)).ok_or_else(small_order)
            }
            Self::Answer(share) => {
                let engine = compute::engine()?;
                let share = share.clone();
                large_stack::run(|| engine.answer(vec![share]))?.pop().map_or_else(lost, joined)
            }
        }
    }
}

/// Computes all pending operations of this thread, including those of handshakes that have ended.
pub(crate) fn compute_turn() {
    HAS_TURNS.set(true);
    let waiting = WAITING.take();
    if waiting.is_empty() {
        return;
    }
    let Ok(engine) = compute::engine() else { return };
    compute_secrets(&engine, &waiting);
    compute_answers(&engine, &waiting);
    if waiting.len() < engine.x25519_batching().crossover {
        LEFT_AT_ONCE.set(AT_ONCE);
    }
}

fn compute_secrets(engine: &Engine, waiting: &[Arc<Operation>]) {
    let asked = || waiting.iter().filter_map(|operation| Some((operation, operation.task.secret()?)));
    let mut secrets = Zeroizing::new(vec![[0; BYTES]; asked().count()]);
    let mut operations: Vec<SecretOperation<'_>> = asked()
        .zip(secrets.iter_mut())
        .map(|((_, (private, peer)), secret)| SecretOperation { private, peer, secret })
        .collect();
    engine.x25519_secrets(&mut operations);
    drop(operations);
    for ((operation, _), secret) in asked().zip(secrets.iter()) {
        let good = x25519::is_contributory(secret);
        let _ = operation.outcome.set(if good { Ok(bytes(secret)) } else { Err(small_order()) });
    }
}

fn compute_answers(engine: &Engine, waiting: &[Arc<Operation>]) {
    let asked = || waiting.iter().filter_map(|operation| Some((operation, operation.task.share()?)));
    let answers = engine.answer(asked().map(|(_, share)| share.clone()).collect());
    for ((operation, _), answer) in asked().zip(answers) {
        let _ = operation.outcome.set(joined(answer));
    }
}

impl Task {
    fn secret(&self) -> Option<(&[u8; BYTES], &[u8; BYTES])> {
        match self {
            Self::Secret { private, peer } => Some((private, peer)),
            Self::Answer(_) => None,
        }
    }

    fn share(&self) -> Option<&ClientShare> {
        match self {
            Self::Answer(share) => Some(share),
            Self::Secret { .. } => None,
        }
    }
}

/// Concatenates the server's share and the secret.
fn joined(answer: Result<ServerShare, ExchangeError>) -> Outcome {
    let ServerShare { public, secret, .. } = answer?;
    // Allocated at full size: a vector that grows would leave a copy of the secret behind.
    let mut both = Zeroizing::new(Vec::with_capacity(public.len() + secret.len()));
    both.extend_from_slice(&public);
    both.extend_from_slice(&secret);
    Ok(both)
}

fn bytes(secret: &[u8; BYTES]) -> Zeroizing<Vec<u8>> {
    Zeroizing::new(secret.to_vec())
}

fn lost() -> Outcome {
    Err(Reason::Internal.into())
}
