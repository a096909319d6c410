//! The sockets of a listener that a configuration brings: TCP's, and UDP's for HTTP/3.

use super::{
    filter_chain::{ActiveListener, PreparedListener},
    socket,
};
use crate::{
    handover::{Inherited, ListenerSockets, QuicSocket, QuicSockets},
    quic::{self, Lineage, QuicKeys, Shard, ShardHandle},
};
use quadrille_config::{Diagnostic, model::Listener};
use quadrille_resumption::FleetSecret;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    os::unix::net::UnixDatagram,
    sync::Arc,
};

/// Sockets of a listener, one of each kind for each event loop, or none.
#[derive(Default)]
pub(crate) struct OpenedSockets {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) quic: Vec<Shard>,
    pub(crate) kept: KeptSockets,
}

/// What is kept of the sockets that event loops have, for a process that comes after this one.
#[derive(Default)]
pub(crate) struct KeptSockets {
    tcp: Vec<TcpListener>,
    quic: Option<(Lineage, Vec<ShardHandle>)>,
}

impl OpenedSockets {
    /// What each of these listeners needs besides what it has.
    ///
    /// # Errors
    /// Every socket that cannot be opened.
    pub(crate) fn open_all(
        listeners: &[PreparedListener],
        retained: &[Option<Arc<ActiveListener>>],
        event_loops: usize,
        fleet: Option<&FleetSecret>,
        inherited: &mut Inherited,
    ) -> Result<Vec<Self>, Vec<Diagnostic>> {
        let mut opened = Vec::new();
        let mut problems = Vec::new();
        for (prepared, before) in listeners.iter().zip(retained) {
            match Self::open(&prepared.model, before.as_deref(), event_loops, fleet, inherited) {
                Ok(sockets) => opened.push(sockets),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(opened) } else { Err(problems) }
    }

    fn open(
        model: &Listener,
        before: Option<&ActiveListener>,
        event_loops: usize,
        fleet: Option<&FleetSecret>,
        inherited: &mut Inherited,
    ) -> Result<Self, Diagnostic> {
        let failed = |error: io::Error| {
            Diagnostic::new(&model.place, format!("cannot take {} over: {error}", model.address))
        };
        let mut opened = Self::default();
        if before.is_none() {
            opened.tcp = inherited.take_tcp(model.address, event_loops).map_err(failed)?;
            if opened.tcp.is_empty() {
                opened.tcp = socket::bind_all(model.address, &model.place, event_loops)?;
            }
            opened.kept.tcp =
                opened.tcp.iter().map(TcpListener::try_clone).collect::<Result<_, _>>().map_err(failed)?;
        }
        if model.http3.is_some() && !before.is_some_and(ActiveListener::has_quic) {
            let address = before.map_or_else(|| opened.bound(model.address), |before| before.bound);
            let QuicSockets { lineage, sockets } =
                match inherited.take_quic(model.address, event_loops).map_err(failed)? {
                    Some(sockets) => sockets,
                    None => {
                        let sockets = quic::bind_all(address, &model.place, event_loops)?.into_iter();
                        let own = |socket| QuicSocket { socket, predecessor: None };
                        QuicSockets { lineage: None, sockets: sockets.map(own).collect() }
                    }
                };
            let sockets = sockets.into_iter().map(|QuicSocket { socket, predecessor }| (socket, predecessor));
            let keys = QuicKeys::new(fleet).zip(lineage.or_else(Lineage::new));
            let shards = keys.and_then(|(keys, lineage)| {
                Some((quic::shards(sockets.collect(), lineage, &keys)?, lineage))
            });
            let ((shards, handles), lineage) = shards.ok_or_else(|| {
                Diagnostic::new(&model.place, "there are no random bytes for QUIC's keys, or no descriptors")
            })?;
            opened.quic = shards;
            opened.kept.quic = Some((lineage, handles));
        }
        Ok(opened)
    }

    /// The address of TCP's, in place of the one that was asked for.
    pub(crate) fn bound(&self, asked: SocketAddr) -> SocketAddr {
        self.tcp.first().and_then(|socket| socket.local_addr().ok()).unwrap_or(asked)
    }
}

impl KeptSockets {
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
