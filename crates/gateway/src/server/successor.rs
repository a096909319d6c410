//! The process that is to take this one's place, while it starts.

use crate::{handover::Successor, listener::filter_chain::ActiveListener};
use std::{future::Future, io, os::unix::net::UnixDatagram, pin::Pin, sync::Arc};

/// A listener whose sockets it has got, and the ends on which datagrams come back.
pub(super) type SharedListener = (Arc<ActiveListener>, Vec<UnixDatagram>);

/// A process that has been started to take this one's place.
pub(super) struct Starting {
    /// Its process id, once it serves.
    serves: Pin<Box<dyn Future<Output = io::Result<u32>>>>,
    /// What it has got.
    pub(super) shared: Vec<SharedListener>,
}

impl Starting {
    pub(super) fn new(successor: Successor, shared: Vec<SharedListener>) -> Self {
        Self { serves: Box::pin(successor.serves()), shared }
    }
}

/// What has become of it; never, if there is none.
pub(super) async fn outcome(starting: &mut Option<Starting>) -> io::Result<u32> {
    match starting {
        Some(starting) => starting.serves.as_mut().await,
        None => std::future::pending().await,
    }
}
