//! UDP sockets: one per event loop, so that the kernel distributes clients (`SO_REUSEPORT`), with many datagrams per
//! system call where possible (GSO, GRO).

use quadrille_config::{
    Diagnostic,
    model::{Place, Problem},
};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::{
    io::{self, IoSliceMut},
    net::{SocketAddr, UdpSocket},
};
use tokio::io::Interest;

/// Size of socket buffers in bytes; the kernel may allow less.
const BUFFER: usize = 2 << 20;

/// Maximum size of a datagram, and of several coalesced by the kernel.
const LARGEST: usize = 65_535;

/// Number of buffers filled by one system call.
const BUFFERS: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };

/// Binds one socket for each of `count` event loops.
///
/// # Errors
/// Returns a diagnostic for the configuration.
pub(crate) fn bind_all(
    address: SocketAddr,
    place: &Place,
    count: usize,
) -> Result<Vec<UdpSocket>, Diagnostic> {
    let explain = |error: io::Error| {
        let message = format!("cannot serve HTTP/3 on {address} over UDP: {error}");
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process or connections from before a reload use the port; see: ss -lunp"
            }
            _ => "choose another address, or `http3: off`",
        };
        Diagnostic::new(place, Problem::new(message, remedy))
    };
    // With SO_REUSEPORT from the start, a second gateway could share the port unnoticed; the first socket binds
    // exclusively.
    let first = bind(address, false).map_err(explain)?;
    // A port chosen by the kernel is used for all sockets.
    let address = first.local_addr().map_err(explain)?;
    SockRef::from(&first).set_reuse_port(true).map_err(explain)?;
    let others = (1..count).map(|_| bind(address, true).map_err(explain));
    std::iter::once(Ok(first)).chain(others).collect()
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    // A smaller buffer is not an error.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// UDP socket of an event loop.
pub(super) struct DatagramSocket {
    socket: tokio::net::UdpSocket,
    offload: UdpSocketState,
    local: SocketAddr,
}

/// Source and destination of a datagram.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) client: SocketAddr,
    pub(super) local: SocketAddr,
}

/// Receive buffers, and the datagrams in them.
pub(super) struct Buffers {
    memory: Vec<Box<[u8]>>,
    received: [RecvMeta; BUFFERS],
    count: usize,
}

impl Default for Buffers {
    fn default() -> Self {
        let memory = (0..BUFFERS).map(|_| vec![0; LARGEST].into()).collect();
        Self { memory, received: [RecvMeta::default(); BUFFERS], count: 0 }
    }
}

impl DatagramSocket {
    /// Registers the socket with this thread's runtime.
    ///
    /// # Errors
    /// Returns an error if the event loop cannot register the socket, or the kernel does not report destinations.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let offload = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, offload, local })
    }

    /// Waits for datagrams. Cancel safe.
    ///
    /// # Errors
    /// Returns the errors of recvmsg(2).
    pub(super) async fn receive(&self, buffers: &mut Buffers) -> io::Result<()> {
        let Buffers { memory, received, count } = buffers;
        *count = 0;
        *count = self
            .socket
            .async_io(Interest::READABLE, || {
                let mut memory = memory.iter_mut();
                let mut slices: [IoSliceMut<'_>; BUFFERS] = std::array::from_fn(|_| {
                    IoSliceMut::new(memory.next().map_or(&mut [][..], |buffer| &mut buffer[..]))
                });
                self.offload.recv((&self.socket).into(), &mut slices, received)
            })
            .await?;
        Ok(())
    }

    /// Returns the datagrams that were received.
    pub(super) fn received<'a>(
        &self,
        buffers: &'a mut Buffers,
    ) -> impl Iterator<Item = (&'a mut [u8], Ends)> + use<'a> {
        let own = self.local;
        buffers.memory.iter_mut().zip(&buffers.received[..buffers.count]).flat_map(
            move |(buffer, received)| {
                let local = SocketAddr::new(received.dst_ip.unwrap_or(own.ip()), own.port());
                let ends = Ends { client: received.addr, local };
                let datagrams = &mut buffer[..received.len.min(LARGEST)];
                datagrams.chunks_mut(received.stride.max(1)).map(move |datagram| (datagram, ends))
            },
        )
    }

    /// Returns the maximum number of equally sized datagrams that the kernel accepts together.
    pub(super) fn most_segments(&self) -> usize {
        self.offload.max_gso_segments()
    }

    /// Sends datagrams of `segment` bytes each; the last may be smaller.
    ///
    /// # Errors
    /// Returns `WouldBlock` if the kernel's buffer is full; after other errors the datagrams are lost, as they may be
    /// on a network.
    pub(super) fn send(&self, ends: Ends, contents: &[u8], segment: usize) -> io::Result<()> {
        let source = ends.local.ip();
        let transmit = Transmit {
            destination: ends.client,
            ecn: None,
            contents,
            segment_size: Some(segment),
            src_ip: (!source.is_unspecified()).then_some(source),
        };
        self.socket.try_io(Interest::WRITABLE, || self.offload.try_send((&self.socket).into(), &transmit))
    }

    /// Waits until there is room to send. Any number of connections may wait.
    pub(super) async fn has_room(&self) {
        // An error means that there is no event loop to wait for.
        let _ = self.socket.writable().await;
    }
}
