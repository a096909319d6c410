//! A successor process that is starting.

use crate::{handover::Successor, listener::filter_chain::ActiveListener};
use std::{future::Future, io, os::unix::net::UnixDatagram, pin::Pin, sync::Arc};

/// A listener whose sockets the successor has received, and the ends on which datagrams return.
pub(super) type SharedListener = (Arc<ActiveListener>, Vec<UnixDatagram>);

/// A process that was started to replace this one.
pub(super) struct Starting {
    /// Resolves to its process id once it is ready.
    serves: Pin<Box<dyn Future<Output = io::Result<u32>>>>,
    /// Listeners whose sockets it has received.
    pub(super) shared: Vec<SharedListener>,
    /// Cause of a reload that was requested since.
    pub(super) reload: Option<String>,
}

impl Starting {
    pub(super) fn new(successor: Successor, shared: Vec<SharedListener>) -> Self {
        Self { serves: Box::pin(successor.serves()), shared, reload: None }
    }
}

/// Waits for the result of the start; forever, if no process is starting.
pub(super) async fn outcome(starting: &mut Option<Starting>) -> io::Result<u32> {
    match starting {
        Some(starting) => starting.serves.as_mut().await,
        None => std::future::pending().await,
    }
}
