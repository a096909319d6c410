//! UDP sockets: one for each event loop, so that the kernel spreads clients (SO_REUSEPORT), with many datagrams to a system
//! call where it can (GSO, GRO).

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

/// What the kernel holds for an event loop that is busy, in bytes; it may allow less.
const BUFFER: usize = 2 << 20;

/// The largest that a datagram can be, and the largest that the kernel makes of several.
const LARGEST: usize = 65_535;

/// How many buffers are read into by one system call.
const BUFFERS: usize = if BATCH_SIZE < 8 { BATCH_SIZE } else { 8 };

/// One socket for each of `count` event loops.
///
/// # Errors
/// Says for the configuration why there is none.
pub(crate) fn bind_all(
    address: SocketAddr,
    place: &Place,
    count: usize,
) -> Result<Vec<UdpSocket>, Diagnostic> {
    let explain = |error: io::Error| {
        let message = format!("cannot serve HTTP/3 on {address} over UDP: {error}");
        let remedy = match error.kind() {
            io::ErrorKind::AddrInUse => {
                "another process has the port, or connections of before a reload; see: ss -lunp"
            }
            _ => "choose another address, or `http3: off`",
        };
        Diagnostic::new(place, Problem::new(message, remedy))
    };
    // SO_REUSEPORT would let a second gateway share the port unnoticed, so the first has it for itself at first.
    let first = bind(address, false).map_err(explain)?;
    // Where the kernel chooses the port, it chooses once.
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
    // Less is no reason not to serve.
    let _ = socket.set_recv_buffer_size(BUFFER);
    let _ = socket.set_send_buffer_size(BUFFER);
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// A socket of an event loop.
pub(super) struct DatagramSocket {
    socket: tokio::net::UdpSocket,
    offload: UdpSocketState,
    local: SocketAddr,
}

/// Where a datagram has come from, and where to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) client: SocketAddr,
    pub(super) local: SocketAddr,
}

/// Memory to read into, and what was read.
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
    /// On this thread's runtime.
    ///
    /// # Errors
    /// If the event loop cannot watch the socket, or the kernel does not say where datagrams go.
    pub(super) fn new(socket: UdpSocket) -> io::Result<Self> {
        let local = socket.local_addr()?;
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let offload = UdpSocketState::new((&socket).into())?;
        Ok(Self { socket, offload, local })
    }

    /// Waits for datagrams. May be dropped without losing any.
    ///
    /// # Errors
    /// Those of recvmsg(2).
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

    /// The datagrams that were read.
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

    /// How many datagrams of one size the kernel takes together.
    pub(super) fn most_segments(&self) -> usize {
        self.offload.max_gso_segments()
    }

    /// Sends datagrams of `segment` bytes each, but for the last, which may be smaller.
    ///
    /// # Errors
    /// `WouldBlock` if the kernel's buffer is full; others lose the datagrams, as networks do.
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

    /// Waits until there is room to send. Any number of connections may.
    pub(super) async fn has_room(&self) {
        // Without an event loop there is nobody to tell.
        let _ = self.socket.writable().await;
    }
}
