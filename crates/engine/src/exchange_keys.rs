//! The engine's entrance for key exchange.

use crate::{BatchFlusher, ClientShare, Engine, Exchange, key_exchange::push};

impl Engine {
    /// Whether [`exchange`](Self::exchange) is to be asked at all, by the engine's settings.
    pub fn exchanges_keys(&self) -> bool {
        self.shared().settings.key_exchange
    }

    /// Answers a client's key share at the end of this turn of the event loop, together with the others of the turn; at
    /// once on a thread without a [`BatchFlusher`].
    ///
    /// The result is [`InvalidInput`](crate::OperationError::InvalidInput) for a share that the client must not have sent.
    pub fn exchange(&self, share: ClientShare) -> Exchange {
        push(self.shared(), share, BatchFlusher::schedule_if_any)
    }
}
