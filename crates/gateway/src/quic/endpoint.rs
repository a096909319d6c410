//! An event loop's end of a listener's QUIC: to whom a datagram belongs, and what becomes of those that belong to nobody.
//!
//! What nobody has asked for costs little: a header is read, and at most one datagram goes back, smaller than what has come
//! (RFC 9000 section 8.1). Under load, a new client proves its address first, which costs a token.

use super::{
    connection_id::{self, ConnectionIds, Home},
    forwarded,
    keys::ResetTokens,
    link::{Ids, Link},
    retry_token::RetryTokens,
    shard::{HandedOver, Shard},
    socket::{Buffers, DatagramSocket, Ends},
    table::Table,
    transmission::Transmission,
};
use crate::{telemetry::metrics, tls::Arrival};
use quadrille_handshake_timing::Marks;
use quadrille_resumption::unix_now;
use quiche::{ConnectionId, Header, Type};
use std::{cell::Cell, future::Future, io, os::unix::net, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::UnixDatagram,
    sync::{mpsc, oneshot},
};

/// A client's first datagram is at least as large (RFC 9000 section 14.1).
const LEAST_INITIAL: usize = 1200;

/// Bytes of a stateless reset. What is shorter is not answered: it may be one itself.
const RESET: usize = 42;
/// An event loop sends so many in a second, and leaves others to their timeouts.
const MOST_RESETS: u32 = 200;

/// How often an endpoint that closes looks whether its connections are gone.
const CLOSING_LOOK: Duration = Duration::from_millis(50);

/// One event loop's end, with what others hand over to it.
pub(crate) struct Endpoint {
    end: End,
    incoming: mpsc::Receiver<HandedOver>,
    /// Until it was used.
    successor: Option<oneshot::Receiver<net::UnixDatagram>>,
}

struct End {
    socket: Arc<DatagramSocket>,
    event_loop: u16,
    ids: Arc<ConnectionIds>,
    tokens: Arc<RetryTokens>,
    resets: Arc<ResetTokens>,
    /// Stateless resets of this second, and the second.
    reset: Cell<(u64, u32)>,
    table: Table<Link>,
    outgoing: Arc<[mpsc::Sender<HandedOver>]>,
    predecessor: Option<net::UnixDatagram>,
}

/// Whose connections they are.
pub(crate) trait Host {
    /// What the host has to know about a connection that it serves.
    type Admitted;

    /// Whether a client has to prove its address before anything is done for it.
    fn asks_for_proof(&self) -> bool;

    /// Takes a new connection, or has it ignored.
    fn admit(&mut self, arrival: &Arrival<'_>) -> Option<Opening<Self::Admitted>>;

    /// Serves it, in a task of its own.
    fn serve(&mut self, link: Link, admitted: Self::Admitted);
}

/// A connection that was taken.
pub(crate) struct Opening<T> {
    pub(crate) connection: quiche::Connection,
    /// Where its handshake is measured, if it is.
    pub(crate) marks: Option<Marks>,
    pub(crate) admitted: T,
}

impl Endpoint {
    /// On this thread's runtime.
    ///
    /// # Errors
    /// If the event loop cannot watch the socket.
    pub(crate) fn new(shard: Shard) -> io::Result<Self> {
        let Shard { socket, index, ids, tokens, resets, incoming, outgoing, predecessor, successor } = shard;
        if let Some(predecessor) = &predecessor {
            predecessor.set_nonblocking(true)?;
        }
        let socket = Arc::new(DatagramSocket::new(socket)?);
        let (reset, table) = (Cell::default(), Table::default());
        let end = End { socket, event_loop: index, ids, tokens, resets, reset, table, outgoing, predecessor };
        Ok(Self { end, incoming, successor: Some(successor) })
    }

    /// Has the host's connections until it closes and they are gone.
    pub(crate) async fn run(self, mut host: impl Host, closing: impl Future<Output = ()>) {
        let (mut buffers, mut closing, mut closed) = (Buffers::default(), pin!(closing), false);
        let Self { end, mut incoming, mut successor } = self;
        let (mut forwarded, mut message) = (None, Vec::new());
        while !closed || !end.table.is_empty() {
            tokio::select! {
                received = end.socket.receive(&mut buffers), if forwarded.is_none() => match received {
                    Ok(()) => for (datagram, ends) in end.socket.received(&mut buffers) {
                        end.take(datagram, ends, !closed, &mut host);
                    },
                    Err(error) => {
                        // Such as that a client cannot be reached, which its connection finds out.
                        tracing::debug!(%error, "a datagram could not be received");
                        tokio::task::yield_now().await;
                    }
                },
                Some(HandedOver { mut datagram, ends }) = incoming.recv() => {
                    end.take_own(&mut datagram, ends, !closed, &mut host);
                }
                Some(datagrams) = handed_over(&mut successor), if forwarded.is_none() => {
                    message.resize(forwarded::LARGEST, 0);
                    forwarded = Some(datagrams);
                }
                length = receive(forwarded.as_ref(), &mut message), if forwarded.is_some() => {
                    if let Some((datagram, ends)) = forwarded::read(&mut message[..length]) {
                        end.take(datagram, ends, !closed, &mut host);
                    }
                }
                () = &mut closing, if !closed => closed = true,
                () = tokio::time::sleep(CLOSING_LOOK), if closed => {}
            }
        }
    }
}

/// The end on which another process sends what is this one's, once it has the socket.
async fn handed_over(successor: &mut Option<oneshot::Receiver<net::UnixDatagram>>) -> Option<UnixDatagram> {
    let datagrams = match successor {
        Some(receiver) => receiver.await,
        None => std::future::pending().await,
    };
    *successor = None;
    UnixDatagram::from_std(datagrams.ok()?).ok()
}

/// The length of the next message; 0 if there is none.
async fn receive(from: Option<&UnixDatagram>, message: &mut [u8]) -> usize {
    let Some(from) = from else { return std::future::pending().await };
    match from.recv(message).await {
        Ok(length) if length > 0 => length,
        // The other process has ended.
        _ => std::future::pending().await,
    }
}

impl End {
    /// A datagram from the network. A client's own first id may look like one of ours by chance: then another event loop takes
    /// the connection, or, while a process before this one drains, none until the client tries again.
    fn take(&self, datagram: &mut [u8], ends: Ends, open: bool, host: &mut impl Host) {
        let Ok(header) = Header::from_slice(datagram, connection_id::LENGTH) else {
            return metrics::datagram_dropped("malformed");
        };
        if let Some(link) = self.table.find(&header.dcid) {
            return link.receive(datagram, ends);
        }
        match self.ids.home(&header.dcid, self.outgoing.len()) {
            Home::EventLoop(index) if index != self.event_loop => {
                let Some(other) = self.outgoing.get(usize::from(index)) else { return };
                metrics::datagram_handed_over();
                let lost = other.try_send(HandedOver { datagram: datagram.to_vec(), ends }).is_err();
                if lost {
                    metrics::datagram_dropped("too_many");
                }
            }
            // It has come here while sockets change hands: a stateless reset would end what lives elsewhere.
            Home::Successor => metrics::datagram_dropped("unknown_connection"),
            Home::Predecessor if self.is_forwarded(datagram, ends) => {}
            _ => self.take_unknown(&header, datagram, ends, open, host),
        }
    }

    /// Sends a datagram to the process before this one; false if that is gone.
    fn is_forwarded(&self, datagram: &[u8], ends: Ends) -> bool {
        let Some(predecessor) = &self.predecessor else { return false };
        match forwarded::send(predecessor, datagram, ends) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                metrics::datagram_dropped("too_many");
                true
            }
            Err(_) => false,
        }
    }

    /// A datagram that is for this event loop, if for any.
    fn take_own(&self, datagram: &mut [u8], ends: Ends, open: bool, host: &mut impl Host) {
        let Ok(header) = Header::from_slice(datagram, connection_id::LENGTH) else { return };
        match self.table.find(&header.dcid) {
            Some(link) => link.receive(datagram, ends),
            None => self.take_unknown(&header, datagram, ends, open, host),
        }
    }

    fn take_unknown(
        &self,
        header: &Header<'_>,
        datagram: &mut [u8],
        ends: Ends,
        open: bool,
        host: &mut impl Host,
    ) {
        let is_first = datagram.len() >= LEAST_INITIAL;
        match header.ty {
            Type::Short => self.reset(header, datagram.len(), ends),
            Type::VersionNegotiation => metrics::datagram_dropped("malformed"),
            _ if !is_first => metrics::datagram_dropped("small"),
            _ if !quiche::version_is_supported(header.version) => self.negotiate_version(header, ends),
            Type::Initial if open => self.take_first(header, datagram, ends, host),
            Type::Initial => metrics::datagram_dropped("closing"),
            _ => metrics::datagram_dropped("unknown_connection"),
        }
    }

    /// A client begins.
    fn take_first(&self, header: &Header<'_>, datagram: &mut [u8], ends: Ends, host: &mut impl Host) {
        let token = header.token.as_deref().filter(|token| !token.is_empty());
        let original = token.and_then(|token| self.tokens.open(unix_now().as_secs(), ends.client, token));
        if original.is_none() && host.asks_for_proof() {
            return self.ask_for_proof(header, ends);
        }
        let id = self.ids.make(self.event_loop);
        let before_retry = original.as_ref().map(|original| (original, &header.dcid));
        let reset_token = self.resets.of(ends.local, &id);
        let arrival = Arrival { id: &id, reset_token, before_retry, client: ends.client, local: ends.local };
        let Some(Opening { connection, marks, admitted }) = host.admit(&arrival) else { return };
        let (table, maker) = (self.table.clone(), Arc::clone(&self.ids));
        let resets = Arc::clone(&self.resets);
        let (event_loop, local) = (self.event_loop, ends.local);
        let ids = Ids { table, maker, resets, event_loop, local, registered: Vec::new() };
        let transmission = Transmission::new(Arc::clone(&self.socket), original.is_some());
        let link = Link::new(connection, transmission, ids, marks);
        // What the client sends before it knows the connection's id carries its own.
        if link.register(&id) {
            link.register(&header.dcid);
            link.receive(datagram, ends);
            host.serve(link, admitted);
        }
    }

    /// Tells a client that nobody knows its connection: this gateway was started again
    /// (RFC 9000 section 10.3). What goes back is shorter than what has come, so that two who know nothing of each other
    /// come to an end, and looks like any other datagram.
    fn reset(&self, header: &Header<'_>, received: usize, ends: Ends) {
        let second = unix_now().as_secs();
        let sent = match self.reset.get() {
            (before, sent) if before == second => sent,
            _ => 0,
        };
        let token =
            self.resets.of(ends.local, &header.dcid).filter(|_| received > RESET && sent < MOST_RESETS);
        let mut out = [0; RESET];
        let Some(token) = token.filter(|_| boring::rand::rand_bytes(&mut out).is_ok()) else {
            return metrics::datagram_dropped("unknown_connection");
        };
        self.reset.set((second, sent + 1));
        // A short header with its fixed bit (RFC 9000 section 17.3.1).
        out[0] = out[0] & 0x3f | 0x40;
        out[RESET - size_of::<u128>()..].copy_from_slice(&token.to_be_bytes());
        metrics::stateless_reset();
        let _ = self.socket.send(ends, &out, RESET);
    }

    /// Version negotiation (RFC 9000 section 6).
    fn negotiate_version(&self, header: &Header<'_>, ends: Ends) {
        let mut out = [0; 128];
        // Ids of other versions may be longer than any answer is worth.
        if let Ok(length) = quiche::negotiate_version(&header.scid, &header.dcid, &mut out) {
            metrics::version_negotiated();
            let _ = self.socket.send(ends, &out[..length], length);
        }
    }

    /// Has the client come again with a token (RFC 9000 section 8.1.2).
    fn ask_for_proof(&self, header: &Header<'_>, ends: Ends) {
        let mut out = [0; 512];
        let Some(token) = self.tokens.seal(unix_now().as_secs(), ends.client, &header.dcid) else { return };
        let id: ConnectionId<'_> = self.ids.make(self.event_loop);
        let retry = quiche::retry(&header.scid, &header.dcid, &id, &token, header.version, &mut out);
        if let Ok(length) = retry {
            metrics::address_proof_asked();
            let _ = self.socket.send(ends, &out[..length], length);
        }
    }
}
