//! Key exchange: server key shares in response to clients' (RFC 8446 section 4.2.8), computed in batches.
//!
//! ```text
//!  connections of one event loop ── ClientShare ──> batch of this turn ── the turn ends ──> ServerShare, to each of them
//!                                                                          │
//!             key pairs, made early in full passes ── each used once ──────┤
//!             X25519 secrets, in lanes from the crossover on ──────────────┤
//!             P-256 secrets, in lanes from theirs on, or declined ─────────┤
//!             ML-KEM-768 encapsulations, in lanes from theirs on ──────────┘
//! ```
//!
//! A share costs less than switching threads twice, so the event loop's own thread computes the batch, and no data is
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
    /// Returns whether the engine's settings enable [`exchange`](Self::exchange).
    pub fn exchanges_keys(&self) -> bool {
        self.shared().settings.key_exchange
    }

    /// Returns whether shares of this group are computed here, at least in large enough batches: depends on the
    /// settings, and for P-256 on lanes that pay.
    pub fn exchanges(&self, group: Group) -> bool {
        let computes = match group {
            Group::X25519 | Group::X25519MlKem768 => true,
            Group::P256 => self.p256_batching().width > 1,
        };
        self.exchanges_keys() && computes
    }

    /// Returns whether to submit the next share of this group on this thread: [`exchanges`](Self::exchanges) must be
    /// true, and for P-256 the last turn must have had enough shares, or be some shares ago. Call it once for each
    /// share.
    pub fn awaits(&self, group: Group) -> bool {
        self.exchanges(group) && (group != Group::P256 || p256::may_have_company())
    }

    /// Computes the response to a client's key share at the end of this turn of the event loop, together with the
    /// others of the turn, or immediately on a thread without a [`BatchFlusher`](crate::BatchFlusher).
    ///
    /// The result is [`InvalidShare`](ExchangeError::InvalidShare) for an invalid share, and
    /// [`Declined`](ExchangeError::Declined) for a P-256 share in a batch that is too small.
    pub fn exchange(&self, share: ClientShare) -> Exchange {
        self.begin_exchange(Pending::new(share, false))
    }

    /// Computes a response as [`exchange`](Self::exchange) does, and measures its CPU time.
    pub fn measured_exchange(&self, share: ClientShare) -> Exchange {
        self.begin_exchange(Pending::new(share, true))
    }

    fn begin_exchange(&self, pending: Pending) -> Exchange {
        let pending = Arc::new(pending);
        turn::push(self, Arc::clone(&pending));
        Exchange::new(pending)
    }

    /// Computes the responses to several clients' key shares together and immediately, for an event loop that forms
    /// its own batches. The results are in the order of the shares, as defined for [`exchange`](Self::exchange).
    pub fn answer(&self, shares: Vec<ClientShare>) -> Vec<Result<ServerShare, ExchangeError>> {
        let pending: Vec<_> = shares.into_iter().map(|share| Arc::new(Pending::new(share, false))).collect();
        batch::compute(self.shared(), &pending);
        pending.iter().map(|pending| pending.take()).collect()
    }

    /// Takes a fresh X25519 key pair from those that this thread has generated in advance, in one batch.
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

    /// Computes the secrets of several connections: whole passes in lanes, and the remainder in lanes too if it pays.
    /// The secret of a point of small order is all zeros, which the caller must reject (RFC 7748 section 6.1).
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
