//! QUIC of a listener, divided between event loops: the kernel selects one by address, and an event loop that
//! receives a datagram of another's connection hands it over.

use super::{
    connection_id::{ConnectionIds, Lineage},
    keys::{QuicKeys, ResetTokens},
    retry_token::RetryTokens,
    socket::Ends,
};
use std::{
    net::{SocketAddr, UdpSocket},
    os::unix::net::UnixDatagram,
    sync::Arc,
};
use tokio::sync::{mpsc, oneshot};

/// Maximum number of datagrams on their way to an event loop; further ones are lost, as they may be on a network.
const MOST_ON_THE_WAY: usize = 1024;

/// QUIC state of one event loop.
pub(crate) struct Shard {
    pub(super) socket: UdpSocket,
    /// Index of the event loop.
    pub(super) index: u16,
    pub(super) ids: Arc<ConnectionIds>,
    pub(super) tokens: Arc<RetryTokens>,
    pub(super) resets: Arc<ResetTokens>,
    pub(super) incoming: mpsc::Receiver<HandedOver>,
    /// Senders to all event loops.
    pub(super) outgoing: Arc<[mpsc::Sender<HandedOver>]>,
    /// Socket to the previous process, for datagrams of its connections.
    pub(super) predecessor: Option<UnixDatagram>,
    /// Receives the socket from which datagrams arrive once the successor process has the UDP socket.
    pub(super) successor: oneshot::Receiver<UnixDatagram>,
}

impl Shard {
    /// Returns the address of its socket.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// Handle of a shard, kept for handing its socket over to the successor process.
pub(crate) struct ShardHandle {
    pub(crate) socket: UdpSocket,
    /// Sends the socket on which that process forwards datagrams of this one's connections.
    pub(crate) successor: oneshot::Sender<UnixDatagram>,
}

/// A datagram received by another event loop.
pub(super) struct HandedOver {
    pub(super) datagram: Vec<u8>,
    pub(super) ends: Ends,
}

/// Creates a shard for each socket, with the socket to the previous process. Returns `None` if memory for keys or
/// file descriptors are exhausted.
pub(crate) fn shards(
    sockets: Vec<(UdpSocket, Option<UnixDatagram>)>,
    lineage: Lineage,
    keys: &QuicKeys,
) -> Option<(Vec<Shard>, Vec<ShardHandle>)> {
    let ids = Arc::new(ConnectionIds::new(lineage));
    let (tokens, resets) = (Arc::new(RetryTokens::new(keys.for_retry()?)), Arc::new(keys.for_resets()?));
    let (outgoing, incoming): (Vec<_>, Vec<_>) =
        sockets.iter().map(|_| mpsc::channel(MOST_ON_THE_WAY)).unzip();
    let outgoing: Arc<[_]> = outgoing.into();
    let shard = |(index, ((socket, predecessor), incoming)): (u16, ((UdpSocket, _), _))| {
        let (sender, successor) = oneshot::channel();
        let handle = ShardHandle { socket: socket.try_clone().ok()?, successor: sender };
        let (ids, tokens, resets) = (Arc::clone(&ids), Arc::clone(&tokens), Arc::clone(&resets));
        let outgoing = Arc::clone(&outgoing);
        Some((
            Shard { socket, index, ids, tokens, resets, incoming, outgoing, predecessor, successor },
            handle,
        ))
    };
    (0..)
        .zip(sockets.into_iter().zip(incoming))
        .map(shard)
        .collect::<Option<Vec<_>>>()
        .map(|all| all.into_iter().unzip())
}
