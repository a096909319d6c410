//! Key exchange: the server's answers to clients' key shares (RFC 8446 section 4.2.8), computed in batches.
//!
//! ```text
//!  connections of one event loop ── ClientShare ──> batch of this turn ── the turn ends ──> ServerShare, to each of them
//!                                                                          │
//!             key pairs, made ahead in full passes ── each used once ──────┤
//!             X25519 secrets, in lanes from the crossover on ──────────────┤
//!             P-256 secrets, in lanes from theirs on, or declined ─────────┤
//!             ML-KEM-768 encapsulations, in lanes from theirs on ──────────┘
//! ```
//!
//! A share costs less than a change of thread and back, so the event loop's own thread computes the batch, and nothing is
//! shared between threads ([why](../../../docs/decisions/key-exchange.md)).

mod batch;
mod exchange;
mod job;
mod key_pairs;
mod p256;
mod turn;
mod wiped_on_fork;

pub use exchange::Exchange;

use crate::{
    ClientShare, Engine, ExchangeError, Group, OperationError, SecretOperation, ServerShare, X25519,
    X25519KeyPair, key_agreement::Scalar,
};
use exchange::Pending;
use std::sync::Arc;
use zeroize::Zeroizing;

impl Engine {
    /// Whether [`exchange`](Self::exchange) is to be asked at all, by the engine's settings.
    pub fn exchanges_keys(&self) -> bool {
        self.shared().settings.key_exchange
    }

    /// Whether shares of this group are to be handed in, at least if enough of them come together: by the settings, and on
    /// P-256 if there are lanes that pay.
    pub fn exchanges(&self, group: Group) -> bool {
        let computes = match group {
            Group::X25519 | Group::X25519MlKem768 => true,
            Group::P256 => self.p256_batching().width > 1,
        };
        self.exchanges_keys() && computes
    }

    /// Whether the next share of this group is worth handing in on this thread: [`exchanges`](Self::exchanges) it is, and
    /// on P-256 the last turn had enough of them, or lies some shares back. To be asked once for each share.
    pub fn awaits(&self, group: Group) -> bool {
        self.exchanges(group) && (group != Group::P256 || p256::may_have_company())
    }

    /// Answers a client's key share at the end of this turn of the event loop, together with the others of the turn; at
    /// once on a thread without a [`BatchFlusher`](crate::BatchFlusher).
    ///
    /// The result is [`InvalidShare`](ExchangeError::InvalidShare) for a share that the client must not have sent, and
    /// [`Declined`](ExchangeError::Declined) for one on P-256 that has come with too few others.
    pub fn exchange(&self, share: ClientShare) -> Exchange {
        let pending = Arc::new(Pending::new(share));
        turn::push(self, Arc::clone(&pending));
        Exchange::new(pending)
    }

    /// Answers several clients' key shares together and now, for an event loop that knows itself which belong together. The
    /// answers are in the order of the shares, and as [`exchange`](Self::exchange) gives them.
    pub fn answer(&self, shares: Vec<ClientShare>) -> Vec<Result<ServerShare, ExchangeError>> {
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
        key_pairs::take_x25519(
            self.shared(),
            self.shared().backend.x25519(),
            std::slice::from_mut(&mut *pair),
        )?;
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
