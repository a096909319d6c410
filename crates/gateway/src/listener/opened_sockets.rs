//! The sockets of a listener that a configuration brings: TCP's, and UDP's for HTTP/3.

use super::{
    filter_chain::{ActiveListener, PreparedListener},
    socket,
};
use crate::quic::{self, QuicKeys, Shard};
use quadrille_config::{Diagnostic, model::Listener};
use quadrille_resumption::FleetSecret;
use std::{
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

/// Sockets of a listener, one of each kind for each event loop, or none.
#[derive(Default)]
pub(crate) struct OpenedSockets {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) quic: Vec<Shard>,
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
    ) -> Result<Vec<Self>, Vec<Diagnostic>> {
        let mut opened = Vec::new();
        let mut problems = Vec::new();
        for (prepared, before) in listeners.iter().zip(retained) {
            match Self::open(&prepared.model, before.as_deref(), event_loops, fleet) {
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
    ) -> Result<Self, Diagnostic> {
        let tcp = match before {
            Some(_) => Vec::new(),
            None => socket::bind_all(model.address, &model.place, event_loops)?,
        };
        let mut opened = Self { tcp, quic: Vec::new() };
        if model.http3.is_some() && !before.is_some_and(ActiveListener::has_quic) {
            let address = before.map_or_else(|| opened.bound(model.address), |before| before.bound);
            let sockets = quic::bind_all(address, &model.place, event_loops)?;
            let keys = QuicKeys::new(fleet);
            let shards = keys
                .and_then(|keys| quic::shards(sockets, &keys))
                .ok_or_else(|| Diagnostic::new(&model.place, "there are no random bytes for QUIC's keys"))?;
            opened.quic = shards;
        }
        Ok(opened)
    }

    /// The address of TCP's, in place of the one that was asked for.
    pub(crate) fn bound(&self, asked: SocketAddr) -> SocketAddr {
        self.tcp.first().and_then(|socket| socket.local_addr().ok()).unwrap_or(asked)
    }
}
