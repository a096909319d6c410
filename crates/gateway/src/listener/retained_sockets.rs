//! Sockets that a listener retains of those that event loops have, for a process that comes after this one.

use crate::{
    handover::{ListenerSockets, QuicSocket, QuicSockets},
    quic::{Lineage, ShardHandle},
};
use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixDatagram,
};

/// TCP's, and the handles of UDP's.
#[derive(Default)]
pub(crate) struct RetainedSockets {
    pub(super) tcp: Vec<TcpListener>,
    pub(super) quic: Option<(Lineage, Vec<ShardHandle>)>,
}

impl RetainedSockets {
    /// Of sockets that were opened later.
    pub(super) fn add(&mut self, more: Self) {
        self.tcp.extend(more.tcp);
        self.quic = more.quic.or(self.quic.take());
    }

    /// HTTP/3's are closed.
    pub(super) fn forget_quic(&mut self) {
        self.quic = None;
    }

    /// For the next process. What it does not take on then stays as it is.
    ///
    /// # Errors
    /// If descriptors run out.
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

    /// The next process has them: datagrams come from there.
    pub(super) fn hand_over(&mut self, ends: Vec<UnixDatagram>) {
        self.tcp.clear();
        for (handle, end) in self.quic.take().into_iter().flat_map(|(_, handles)| handles).zip(ends) {
            // Whoever does not listen any more has no connections.
            let _ = handle.successor.send(end);
        }
    }
}
