//! Sockets opened for the listeners of a configuration: TCP, and UDP for HTTP/3.

use super::{
    filter_chain::{ActiveListener, PreparedListener},
    retained_sockets::RetainedSockets,
    socket,
};
use crate::{
    handover::{Inherited, QuicSocket, QuicSockets},
    quic::{self, Lineage, QuicKeys, Shard},
};
use quadrille_config::{Diagnostic, model::Listener};
use quadrille_resumption::FleetSecret;
use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
};

/// Sockets of a listener: for each kind, one per event loop, or none.
#[derive(Default)]
pub(crate) struct OpenedSockets {
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) quic: Vec<Shard>,
    pub(crate) retained: RetainedSockets,
}

impl OpenedSockets {
    /// Opens the sockets that each of these listeners needs in addition to those retained.
    ///
    /// # Errors
    /// Returns a diagnostic for every socket that cannot be opened.
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
            Diagnostic::new(&model.place, format!("cannot take over {}: {error}", model.address))
        };
        let mut opened = Self::default();
        if !model.bound {
            return Ok(opened);
        }
        if before.is_none() && model.tcp {
            opened.tcp = inherited.take_tcp(model.address, event_loops).map_err(failed)?;
            if opened.tcp.is_empty() {
                opened.tcp = socket::bind_all(model.address, &model.place, event_loops)?;
            }
            opened.retained.tcp =
                opened.tcp.iter().map(TcpListener::try_clone).collect::<Result<_, _>>().map_err(failed)?;
        }
        if model.has_http3() && !before.is_some_and(ActiveListener::has_quic) {
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
                Diagnostic::new(&model.place, "no random bytes for QUIC keys, or no file descriptors")
            })?;
            opened.quic = shards;
            opened.retained.quic = Some((lineage, handles));
        }
        Ok(opened)
    }

    /// Returns the address that the sockets are bound to; `asked` if there is no socket.
    pub(crate) fn bound(&self, asked: SocketAddr) -> SocketAddr {
        let tcp = self.tcp.first().and_then(|socket| socket.local_addr().ok());
        tcp.or_else(|| self.quic.first()?.address()).unwrap_or(asked)
    }
}
