//! Duplicates of the event loops' sockets that a listener retains for a successor process.

use crate::{
    handover::{ListenerSockets, QuicSocket, QuicSockets},
    quic::{Lineage, ShardHandle},
};
use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixDatagram,
};

/// TCP sockets, and handles of UDP sockets.
#[derive(Default)]
pub(crate) struct RetainedSockets {
    pub(super) tcp: Vec<TcpListener>,
    pub(super) quic: Option<(Lineage, Vec<ShardHandle>)>,
}

impl RetainedSockets {
    /// Adds sockets that were opened later.
    pub(super) fn add(&mut self, more: Self) {
        self.tcp.extend(more.tcp);
        self.quic = more.quic.or(self.quic.take());
    }

    /// Drops the sockets of HTTP/3.
    pub(super) fn forget_quic(&mut self) {
        self.quic = None;
    }

    /// Duplicates the sockets for a successor process. Sockets that it does not take over are unaffected.
    ///
    /// # Errors
    /// Returns an error if file descriptors are exhausted.
    pub(super) fn share(&self, address: SocketAddr) -> io::Result<(ListenerSockets, Vec<UnixDatagram>)> {
        let tcp = self.tcp.iter().map(TcpListener::try_clone).collect::<io::Result<_>>()?;
        let mut ends = Vec::new();
        let mut sockets = Vec::new();
        for handle in self.quic.iter().flat_map(|(_, handles)| handles) {
            let (ours, theirs) = UnixDatagram::pair()?;
            ours.set_nonblocking(true)?;
            ends.push(ours);
            sockets.push(QuicSocket { socket: handle.socket.try_clone()?, predecessor: Some(theirs) });
        }
        let quic =
            self.quic.as_ref().map(|&(lineage, _)| QuicSockets { lineage: Some(lineage.next()), sockets });
        Ok((ListenerSockets { address, tcp, quic }, ends))
    }

    /// Records that the successor process has the sockets: datagrams arrive from there.
    pub(super) fn hand_over(&mut self, ends: Vec<UnixDatagram>) {
        self.tcp.clear();
        for (handle, end) in self.quic.take().into_iter().flat_map(|(_, handles)| handles).zip(ends) {
            // A shard that has stopped listening has no connections.
            let _ = handle.successor.send(end);
        }
    }
}
