//! A listener's QUIC, divided between the event loops: the kernel chooses by address which of them gets a datagram, and
//! whoever gets one of another's connection hands it over.

use super::{
    connection_id::ConnectionIds,
    keys::{QuicKeys, ResetTokens},
    retry_token::RetryTokens,
    socket::Ends,
};
use std::{net::UdpSocket, sync::Arc};
use tokio::sync::mpsc;

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
}

/// A datagram that another event loop has received.
pub(super) struct HandedOver {
    pub(super) datagram: Vec<u8>,
    pub(super) ends: Ends,
}

/// One for each socket. `None` if there is no memory for keys.
pub(crate) fn shards(sockets: Vec<UdpSocket>, keys: &QuicKeys) -> Option<Vec<Shard>> {
    let (ids, tokens) = (Arc::new(ConnectionIds::default()), Arc::new(RetryTokens::new(keys.for_retry()?)));
    let resets = Arc::new(keys.for_resets()?);
    let (outgoing, incoming): (Vec<_>, Vec<_>) =
        sockets.iter().map(|_| mpsc::channel(MOST_ON_THE_WAY)).unzip();
    let outgoing: Arc<[_]> = outgoing.into();
    let shard = |(index, (socket, incoming))| Shard {
        socket,
        index,
        ids: Arc::clone(&ids),
        tokens: Arc::clone(&tokens),
        resets: Arc::clone(&resets),
        incoming,
        outgoing: Arc::clone(&outgoing),
    };
    Some((0..).zip(sockets.into_iter().zip(incoming)).map(shard).collect())
}
