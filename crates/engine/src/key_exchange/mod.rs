//! Key exchange: the server's answers to clients' key shares (RFC 8446 section 4.2.8), computed in batches.
//!
//! ```text
//!  connections of one event loop ── ClientShare ──> batch of this turn ── the turn ends ──> ServerShare, to each of them
//!                                                                          │
//!             key pairs, made ahead in full passes ── each used once ──────┤
//!             X25519 secrets, in lanes from the crossover on ──────────────┤
//!             ML-KEM-768 encapsulations, in lanes from theirs on ──────────┘
//! ```
//!
//! A share costs less than a change of thread and back, so the event loop's own thread computes the batch, and nothing is
//! shared between threads ([why](../../../docs/decisions/key-exchange.md)).

mod batch;
mod exchange;
mod key_pairs;
mod turn;
mod wiped_on_fork;

pub use exchange::Exchange;

use crate::{
    ClientShare, Engine, OperationError, SecretOperation, ServerShare, X25519, X25519KeyPair,
    key_agreement::Scalar,
};
use exchange::Pending;
use std::sync::Arc;
use zeroize::Zeroizing;

impl Engine {
    /// Whether [`exchange`](Self::exchange) is to be asked at all, by the engine's settings.
    pub fn exchanges_keys(&self) -> bool {
        self.shared().settings.key_exchange
    }

    /// Answers a client's key share at the end of this turn of the event loop, together with the others of the turn; at
    /// once on a thread without a [`BatchFlusher`](crate::BatchFlusher).
    ///
    /// The result is [`InvalidInput`](crate::OperationError::InvalidInput) for a share that the client must not have sent.
    pub fn exchange(&self, share: ClientShare) -> Exchange {
        let pending = Arc::new(Pending::new(share));
        turn::push(self, Arc::clone(&pending));
        Exchange::new(pending)
    }

    /// Answers several clients' key shares together and now, for an event loop that knows itself which belong together. The
    /// answers are in the order of the shares, and as [`exchange`](Self::exchange) gives them.
    pub fn answer(&self, shares: Vec<ClientShare>) -> Vec<Result<ServerShare, OperationError>> {
        let pending: Vec<_> = shares.into_iter().map(|share| Arc::new(Pending::new(share))).collect();
        batch::compute(self.shared(), &pending);
        pending.iter().map(|pending| pending.take()).collect()
    }

    /// A key pair of X25519 that nobody else gets: one of those that this thread has made ahead, together.
    ///
    /// # Errors
    /// [`Failed`](OperationError::Failed) without random numbers.
    pub fn x25519_key_pair(&self) -> Result<Zeroizing<X25519KeyPair>, OperationError> {
        let mut pair = Zeroizing::new(X25519KeyPair::default());
        key_pairs::take(self.shared(), self.shared().backend.x25519(), std::slice::from_mut(&mut *pair))?;
        Ok(pair)
    }

    /// The secrets of several connections: whole passes in lanes, and what is left over there too if it pays. Zeros are
    /// the secret of a point of small order, which whoever takes it must refuse (RFC 7748 section 6.1).
    pub fn x25519_secrets(&self, operations: &mut [SecretOperation<'_>]) {
        let lanes = self.shared().backend.x25519();
        let in_lanes = lanes.map_or(0, |lanes| lanes.batching().worth(operations.len()));
        let (in_lanes, rest) = operations.split_at_mut(in_lanes);
        if let Some(lanes) = lanes.filter(|_| !in_lanes.is_empty()) {
            lanes.secrets(in_lanes);
        }
        Scalar.secrets(rest);
    }
}
