//! QUIC endpoint of an event loop: dispatches datagrams to connections, and handles those without one.
//!
//! An unsolicited datagram costs little: a header is parsed, and at most one datagram is sent, smaller than the one
//! received (RFC 9000 section 8.1). Under load, a new client has to validate its address first, which costs a token.

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
use quadrille_unix_time::since_epoch;
use quiche::{ConnectionId, Header, Type};
use std::{cell::Cell, future::Future, io, os::unix::net, pin::pin, sync::Arc, time::Duration};
use tokio::{
    net::UnixDatagram,
    sync::{mpsc, oneshot},
};

/// Minimum size of a client's first datagram (RFC 9000 section 14.1).
const LEAST_INITIAL: usize = 1200;

/// Size of a stateless reset. Shorter datagrams do not trigger one, as they may be resets themselves.
const RESET: usize = 42;
/// Maximum number of stateless resets per second and event loop; other clients time out.
const MOST_RESETS: u32 = 200;

/// Number of datagrams after which the other tasks of the event loop run, and the kernel is polled for their events: a
/// flood of datagrams must not delay other connections. That is some 0.2 ms.
const TURN: usize = 64;

/// Interval at which a closing endpoint checks whether its connections have ended.
const CLOSING_LOOK: Duration = Duration::from_millis(50);

/// QUIC endpoint of an event loop, with the datagrams that others hand over.
pub(crate) struct Endpoint {
    end: End,
    incoming: mpsc::Receiver<HandedOver>,
    /// Set until the handover has occurred.
    successor: Option<oneshot::Receiver<net::UnixDatagram>>,
}

struct End {
    socket: Arc<DatagramSocket>,
    event_loop: u16,
    ids: Arc<ConnectionIds>,
    tokens: Arc<RetryTokens>,
    resets: Arc<ResetTokens>,
    /// Current second, and the number of stateless resets sent in it.
    reset: Cell<(u64, u32)>,
    table: Table<Link>,
    outgoing: Arc<[mpsc::Sender<HandedOver>]>,
    predecessor: Option<net::UnixDatagram>,
}

/// Handler of new connections.
pub(crate) trait Host {
    /// State that the host attaches to a connection.
    type Admitted;

    /// Returns whether a client has to validate its address first.
    fn asks_for_proof(&self) -> bool;

    /// Accepts a new connection, or returns `None` to ignore it.
    fn admit(&mut self, arrival: &Arrival<'_>) -> Option<Opening<Self::Admitted>>;

    /// Serves the connection in a separate task.
    fn serve(&mut self, link: Link, admitted: Self::Admitted);
}

/// A connection that was accepted.
pub(crate) struct Opening<T> {
    pub(crate) connection: quiche::Connection,
    /// Measurement of the handshake, if it is sampled.
    pub(crate) marks: Option<Marks>,
    pub(crate) admitted: T,
}

impl Endpoint {
    /// Registers the socket with this thread's runtime.
    ///
    /// # Errors
    /// Returns an error if the event loop cannot register the socket.
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

    /// Serves the host's connections until it closes and they have ended.
    pub(crate) async fn run(self, mut host: impl Host, closing: impl Future<Output = ()>) {
        let (mut buffers, mut closing, mut closed) = (Buffers::default(), pin!(closing), false);
        let Self { end, mut incoming, mut successor } = self;
        let (mut forwarded, mut message, mut taken) = (None, Vec::new(), 0);
        while !closed || !end.table.is_empty() {
            tokio::select! {
                received = end.socket.receive(&mut buffers), if forwarded.is_none() => match received {
                    Ok(()) => {
                        for (datagram, ends) in end.socket.received(&mut buffers) {
                            end.take(datagram, ends, !closed, &mut host);
                            taken += 1;
                        }
                        if taken >= TURN {
                            taken = 0;
                            tokio::task::yield_now().await;
                        }
                    }
                    Err(error) => {
                        // For example an unreachable client, which its connection detects.
                        tracing::debug!(%error, "cannot receive a datagram");
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

/// Returns the socket on which the successor process forwards datagrams, once it has the UDP socket.
async fn handed_over(successor: &mut Option<oneshot::Receiver<net::UnixDatagram>>) -> Option<UnixDatagram> {
    let datagrams = match successor {
        Some(receiver) => receiver.await,
        None => std::future::pending().await,
    };
    *successor = None;
    UnixDatagram::from_std(datagrams.ok()?).ok()
}

/// Returns the length of the next message.
async fn receive(from: Option<&UnixDatagram>, message: &mut [u8]) -> usize {
    let Some(from) = from else { return std::future::pending().await };
    match from.recv(message).await {
        Ok(length) if length > 0 => length,
        // The successor process has ended.
        _ => std::future::pending().await,
    }
}

impl End {
    /// Dispatches a datagram from the network. A client's own first ID may look like one of ours by chance: then
    /// another event loop takes the connection, or, while a previous process drains, none until the client retries.
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
            home if home.may_be_served_by_successor(header.ty == Type::Initial && open) => {
                metrics::datagram_dropped("unknown_connection");
            }
            Home::Predecessor if self.is_forwarded(datagram, ends) => {}
            _ => self.take_unknown(&header, datagram, ends, open, host),
        }
    }

    /// Forwards a datagram to the previous process; returns false if it has ended.
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

    /// Handles a datagram for this event loop.
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

    /// Handles the first datagram of a client.
    fn take_first(&self, header: &Header<'_>, datagram: &mut [u8], ends: Ends, host: &mut impl Host) {
        let token = header.token.as_deref().filter(|token| !token.is_empty());
        let original = token.and_then(|token| self.tokens.open(since_epoch().as_secs(), ends.client, token));
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
        // Until the client receives the connection's ID, its datagrams carry its own.
        if link.register(&id) {
            link.register(&header.dcid);
            link.receive(datagram, ends);
            host.serve(link, admitted);
        }
    }

    /// Sends a stateless reset for an unknown connection, as after a restart (RFC 9000 section 10.3). It is shorter
    /// than the datagram received, so that two endpoints do not reset each other forever, and looks like any other
    /// datagram.
    fn reset(&self, header: &Header<'_>, received: usize, ends: Ends) {
        let second = since_epoch().as_secs();
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
        // Sets a short header with its fixed bit (RFC 9000 section 17.3.1).
        out[0] = out[0] & 0x3f | 0x40;
        out[RESET - size_of::<u128>()..].copy_from_slice(&token.to_be_bytes());
        metrics::stateless_reset();
        let _ = self.socket.send(ends, &out, RESET);
    }

    /// Sends a version negotiation packet (RFC 9000 section 6).
    fn negotiate_version(&self, header: &Header<'_>, ends: Ends) {
        let mut out = [0; 128];
        // IDs of other versions may be longer than the buffer; they get no response.
        if let Ok(length) = quiche::negotiate_version(&header.scid, &header.dcid, &mut out) {
            metrics::version_negotiated();
            let _ = self.socket.send(ends, &out[..length], length);
        }
    }

    /// Sends a Retry with a token (RFC 9000 section 8.1.2).
    fn ask_for_proof(&self, header: &Header<'_>, ends: Ends) {
        let mut out = [0; 512];
        let Some(token) = self.tokens.seal(since_epoch().as_secs(), ends.client, &header.dcid) else {
            return;
        };
        let id: ConnectionId<'_> = self.ids.make(self.event_loop);
        let retry = quiche::retry(&header.scid, &header.dcid, &id, &token, header.version, &mut out);
        if let Ok(length) = retry {
            metrics::address_proof_asked();
            let _ = self.socket.send(ends, &out[..length], length);
        }
    }
}
