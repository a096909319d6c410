//! What several handshakes of an event loop need, computed together.
//!
//! Each handshake in a job hands its operation in, asks its server to be resumed, and is paused. Before the server resumes
//! it, it has what was handed in computed, on its own stack: that of a job is too small for lanes. No other thread is
//! involved, because one operation costs less than a change of thread and back.

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

/// Length of X25519's keys and secrets.
pub(super) const BYTES: usize = 32;

type Secret = Zeroizing<[u8; BYTES]>;

/// After a turn with too few operations for lanes, so many are computed at once, before another turn is tried.
const AT_ONCE: u32 = 16;

thread_local! {
    /// Whether the server's module computes turns in this thread.
    static HAS_TURNS: Cell<bool> = const { Cell::new(false) };
    static WAITING: RefCell<Vec<Arc<Operation>>> = const { RefCell::new(Vec::new()) };
    /// How many operations are still computed at once.
    static LEFT_AT_ONCE: Cell<u32> = const { Cell::new(0) };
}

/// An operation that waits for others.
struct Operation {
    task: Task,
    outcome: OnceLock<Outcome>,
}

enum Task {
    /// The secret that a private key and the peer's public key share.
    Secret { private: Secret, peer: [u8; BYTES] },
    /// The answer to a client's share: what is sent, and after it the secret.
    Answer(ClientShare),
}

/// The secret that a private key and the peer's public key share: with those of other handshakes where lanes pay and
/// the server computes turns.
pub(super) fn secret(private: &[u8; BYTES], peer: &[u8; BYTES]) -> Result<Secret, Failure> {
    if !waits()? {
        return x25519::secret(private, peer).ok_or_else(small_order);
    }
    let outcome = in_turn(Task::Secret { private: Zeroizing::new(*private), peer: *peer })?;
    let mut secret = Zeroizing::new([0; BYTES]);
    secret.copy_from_slice(&outcome);
    Ok(secret)
}

/// The answer to a client's share, and after it the secret: in the same way.
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

/// Whether the last turn was not worth it, and the next one is not yet to be tried.
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

/// An operation that is handed in when it is first polled, and done when it is polled again.
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
        // None if it was resumed before the turn was computed.
        Poll::Ready(outcome.get().cloned().unwrap_or_else(|| task.compute()))
    }
}

impl Task {
    /// Alone, and now.
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

/// Computes whatever waits in this thread, also for handshakes that have ended meanwhile.
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

/// What is sent, and after it the secret.
fn joined(answer: Result<ServerShare, ExchangeError>) -> Outcome {
    let ServerShare { public, secret, .. } = answer?;
    // With room for all of it: a vector that grows would leave a copy of the secret behind.
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
