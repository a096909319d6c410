//! Redis: where it is, and connections to it.
//!
//! Every thread has a connection of its own, driven by its own event loop: a question costs no change of thread. The
//! client library multiplexes: many questions are on their way at once. Its own connection manager would bring its own
//! TLS; [`Redis`] connects by itself, so that BoringSSL stays the only TLS library.

mod connect;
mod link;
mod options;

pub(crate) use connect::Connection;
pub use options::RedisOptions;
pub use quadrille_config::model::RedisAddress;

use crate::FleetError;
use options::Shared;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

/// One Redis, or a cluster of them. Connections are opened when they are needed.
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

impl Redis {
    /// Does not connect yet.
    pub fn new(address: RedisAddress, options: RedisOptions) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Shared { id, address, options }))
    }

    /// Begins to connect from this thread, so that the first question need not wait.
    pub fn warm(&self) {
        drop(link::connection(&self.0));
    }

    /// This thread's connection; connects first if there is none.
    ///
    /// # Errors
    /// If it cannot be reached, or has just been found unreachable.
    pub(crate) async fn connection(&self) -> Result<Connection, FleetError> {
        link::connection(&self.0).await
    }

    /// This thread's connection was of no use: the next question opens a new one.
    pub(crate) fn discard(&self) {
        link::discard(&self.0);
    }

    /// What it answered. After a failure the next question opens a new connection: a stalled one says nothing about it.
    pub(crate) fn checked<T>(&self, answer: redis::RedisResult<T>) -> Result<T, FleetError> {
        answer.map_err(|error| {
            if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
                self.discard();
            }
            error.into()
        })
    }
}

/// Without the password.
impl fmt::Display for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.address.fmt(f)
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Redis({self})")
    }
}
