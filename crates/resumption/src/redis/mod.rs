//! Redis addresses and connections.
//!
//! Every thread has a connection of its own, driven by its own event loop, so a request costs no thread switch. The
//! client library multiplexes: many requests are in flight at once. Its own connection manager would bring its own
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

/// One Redis, or a Redis cluster. Connections are opened when they are needed.
#[derive(Clone)]
pub struct Redis(Arc<Shared>);

impl Redis {
    /// Creates a handle without connecting.
    pub fn new(address: RedisAddress, options: RedisOptions) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Self(Arc::new(Shared { id, address, options }))
    }

    /// Starts to connect from this thread, so that the first request does not wait.
    pub fn warm(&self) {
        drop(link::connection(&self.0));
    }

    /// Returns this thread's connection; connects first if it is not open.
    ///
    /// # Errors
    /// If Redis cannot be reached, or the last attempt failed a moment ago.
    pub(crate) async fn connection(&self) -> Result<Connection, FleetError> {
        link::connection(&self.0).await
    }

    /// Drops this thread's connection: the next request opens a new one.
    pub(crate) fn discard(&self) {
        link::discard(&self.0);
    }

    /// Checks a response. After a failure the next request opens a new connection: a stall does not imply that a new
    /// connection stalls too.
    pub(crate) fn checked<T>(&self, answer: redis::RedisResult<T>) -> Result<T, FleetError> {
        answer.map_err(|error| {
            if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() {
                self.discard();
            }
            error.into()
        })
    }
}

/// Shows the address without the password.
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
