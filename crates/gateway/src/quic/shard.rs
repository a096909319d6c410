//! A listener's QUIC, divided between the event loops: the kernel chooses by address which of them gets a datagram, and
//! whoever gets one of another's connection hands it over.

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

/// Datagrams that may be on their way to an event loop; what is more is lost, as networks lose it.
const MOST_ON_THE_WAY: usize = 1024;

/// What one event loop has of it.
pub(crate) struct Shard {
    pub(super) socket: UdpSocket,
    /// Among the event loops.
    pub(super) index: u16,
    pub(super) ids: Arc<ConnectionIds>,
    pub(super) tokens: Arc<RetryTokens>,
    pub(super) resets: Arc<ResetTokens>,
    pub(super) incoming: mpsc::Receiver<HandedOver>,
    /// Of all event loops.
    pub(super) outgoing: Arc<[mpsc::Sender<HandedOver>]>,
    /// Where datagrams go whose connections a process before this one has.
    pub(super) predecessor: Option<UnixDatagram>,
    /// From where datagrams come once a process after this one has the socket.
    pub(super) successor: oneshot::Receiver<UnixDatagram>,
}

impl Shard {
    /// Where its datagrams come to.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// What is kept of a shard to hand its socket over to another process.
pub(crate) struct ShardHandle {
    pub(crate) socket: UdpSocket,
    /// Takes the end on which that process sends what is still this one's.
    pub(crate) successor: oneshot::Sender<UnixDatagram>,
}

/// A datagram that another event loop has received.
pub(super) struct HandedOver {
    pub(super) datagram: Vec<u8>,
    pub(super) ends: Ends,
}

/// One for each socket, with where the datagrams of a process before go. `None` if there is no memory for keys, or no
/// descriptor.
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
