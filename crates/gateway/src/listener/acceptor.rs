//! Listening socket of one event loop. An accepted connection is registered with the event loop only if it is kept,
//! and connections that the kernel can drop are not accepted at all.

use super::{filter_chain::ActiveListener, packet_filter};
use crate::admission::LoopAdmission;
use rustix::net::{SocketFlags, acceptfrom_with};
use socket2::SockRef;
use std::{
    io::{self, ErrorKind},
    net::{IpAddr, SocketAddr, TcpListener, TcpStream},
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::io::{Interest, unix::AsyncFd};

/// Interval at which the set of dropped networks is reviewed while the kernel drops connections.
const REVIEWED_EVERY: Duration = Duration::from_millis(100);

pub(crate) struct Acceptor {
    socket: AsyncFd<TcpListener>,
    admission: Arc<LoopAdmission>,
    /// Networks whose connections the kernel drops, as of `version`.
    dropped: Vec<IpAddr>,
    version: u64,
    reviewed: Instant,
}

impl Acceptor {
    /// Registers the socket with this thread's runtime.
    ///
    /// # Errors
    /// Returns an error if the event loop cannot register the socket.
    pub(crate) fn new(socket: TcpListener, admission: &Arc<LoopAdmission>) -> io::Result<Self> {
        // A previous process may have left its filter attached.
        let _ = SockRef::from(&socket).detach_filter();
        // SAFETY: a listening socket keeps its descriptor until it is dropped, and it is not closed before.
        let socket = unsafe { AsyncFd::register_with_interest(socket, Interest::READABLE) }?;
        let (admission, version) = (Arc::clone(admission), admission.shut_out_version());
        Ok(Self { socket, admission, dropped: Vec::new(), version, reviewed: Instant::now() })
    }

    /// Returns the next connection, in non-blocking mode. Cancel safe.
    ///
    /// # Errors
    /// Returns the errors of accept(2).
    pub(super) async fn accept(&mut self, listener: &ActiveListener) -> io::Result<(TcpStream, SocketAddr)> {
        loop {
            self.review(listener);
            let accepted = self.socket.async_io(Interest::READABLE, accept);
            if self.dropped.is_empty() {
                return accepted.await;
            }
            if let Ok(accepted) = tokio::time::timeout(REVIEWED_EVERY, accepted).await {
                return accepted;
            }
        }
    }

    /// Removes the socket from the event loop.
    pub(super) fn into_inner(self) -> TcpListener {
        if !self.dropped.is_empty() {
            let _ = SockRef::from(self.socket.get_ref()).detach_filter();
        }
        self.socket.into_inner()
    }

    /// Updates the packet filter to the networks that are shut out now.
    fn review(&mut self, listener: &ActiveListener) {
        let version = self.admission.shut_out_version();
        let is_due = !self.dropped.is_empty() && self.reviewed.elapsed() >= REVIEWED_EVERY;
        if version == self.version && !is_due {
            return;
        }
        let is_meant = listener.config().knows_clients_by_address();
        let networks = if is_meant { self.admission.shut_out() } else { Vec::new() };
        (self.version, self.reviewed) = (version, Instant::now());
        if networks == self.dropped {
            return;
        }
        let socket = SockRef::from(self.socket.get_ref());
        let changed = match &networks[..] {
            [] => socket.detach_filter(),
            networks => socket.attach_filter(&packet_filter::program(networks)),
        };
        match changed {
            Ok(()) => self.dropped = networks,
            // Their connections are rejected after the accept instead.
            Err(error) => tracing::debug!(%error, "the kernel rejects the packet filter"),
        }
    }
}

/// Accepts a connection in non-blocking mode with one system call, where [`TcpListener::accept`] needs two.
///
/// # Errors
/// Returns the errors of accept(2).
pub(super) fn accept(socket: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (descriptor, peer) = rustix::io::retry_on_intr(|| acceptfrom_with(socket, flags))?;
    let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok()).ok_or(ErrorKind::NotConnected)?;
    Ok((descriptor.into(), peer))
}
