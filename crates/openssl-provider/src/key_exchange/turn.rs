//! The secrets of several handshakes of an event loop, together.
//!
//! Each handshake in a job hands its operation in, asks its server to be resumed, and is paused. Before the server resumes
//! it, it has what was handed in computed, on its own stack: that of a job is too small for lanes. No other thread is
//! involved, because one secret costs less than a change of thread and back.

use super::key::BYTES;
use crate::{
    compute,
    error::{Failure, Reason},
    wait::{self, Outcome},
};
use quadrille_engine::{SecretOperation, x25519};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    sync::{Arc, OnceLock},
    task::{Context, Poll},
};
use zeroize::Zeroizing;

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
    private: Secret,
    peer: [u8; BYTES],
    secret: OnceLock<Secret>,
}

/// The secret that a private key and the peer's public key share: with those of other handshakes where lanes pay and
/// the server computes turns.
pub(super) fn secret(private: &[u8; BYTES], peer: &[u8; BYTES]) -> Result<Secret, Failure> {
    let waits = HAS_TURNS.get() && wait::can_pause() && lanes_pay()? && !is_at_once();
    if !waits {
        return x25519::secret(private, peer).ok_or_else(small_order);
    }
    let private = Zeroizing::new(*private);
    let operation = Arc::new(Operation { private, peer: *peer, secret: OnceLock::new() });
    let secret = wait::for_answer(Box::pin(InTurn { operation, handed_in: false }))?;
    let mut bytes = Zeroizing::new([0; BYTES]);
    bytes.copy_from_slice(&secret);
    Ok(bytes)
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
        let Operation { private, peer, secret } = &*self.operation;
        let secret = match secret.get() {
            // A point of small order has none.
            Some(secret) => Some(secret).filter(|secret| x25519::is_contributory(secret)).cloned(),
            // Resumed before the turn was computed.
            None => x25519::secret(private, peer),
        };
        Poll::Ready(secret.map(|secret| Zeroizing::new(secret.to_vec())).ok_or_else(small_order))
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
    let mut secrets = Zeroizing::new(vec![[0; BYTES]; waiting.len()]);
    let mut operations: Vec<SecretOperation<'_>> = waiting
        .iter()
        .zip(secrets.iter_mut())
        .map(|(operation, secret)| SecretOperation {
            private: &operation.private,
            peer: &operation.peer,
            secret,
        })
        .collect();
    engine.x25519_secrets(&mut operations);
    drop(operations);
    for (operation, secret) in waiting.iter().zip(secrets.iter()) {
        let _ = operation.secret.set(Zeroizing::new(*secret));
    }
    if waiting.len() < engine.x25519_batching().crossover {
        LEFT_AT_ONCE.set(AT_ONCE);
    }
}
