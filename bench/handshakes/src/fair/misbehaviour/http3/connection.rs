//! QUIC connections of misbehaving clients, on quiche's transport without its HTTP/3.

use std::{
    io::{self, ErrorKind},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use boring::ssl::{SslContextBuilder, SslMethod, SslVerifyMode};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use quiche::{ConnectionId, RecvInfo, Shutdown};

use crate::fair::tls::TICK;

/// A connection, closed on drop once it is established.
pub(super) struct Connection {
    socket: UdpSocket,
    addresses: RecvInfo,
    quic: quiche::Connection,
    datagram: Vec<u8>,
}

/// Window of a connection.
const WINDOW: u64 = 64 << 20;
/// Idle timeout that the client announces, milliseconds.
const IDLE_TIMEOUT: u64 = 300_000;
/// Time within which a handshake must complete.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// Pause of a client that may not send more.
pub(super) const BLOCKED: Duration = Duration::from_millis(5);
/// Maximum number of datagrams that are processed at once.
const BATCH: usize = 64;
const LARGEST_DATAGRAM: usize = 65_535;
/// Error codes H3_NO_ERROR and H3_REQUEST_CANCELLED (RFC 9114 section 8.1).
const NO_ERROR: u64 = 0x100;
const REQUEST_CANCELLED: u64 = 0x10c;

/// Returns the configuration of connections with this initial window of streams.
pub(super) fn configuration(window: u64) -> io::Result<quiche::Config> {
    let mut context = SslContextBuilder::new(SslMethod::tls()).map_err(io::Error::other)?;
    context.set_verify(SslVerifyMode::NONE);
    let mut config = quiche::Config::with_boring_ssl_ctx_builder(quiche::PROTOCOL_VERSION, context)
        .map_err(io::Error::other)?;
    config.set_application_protos(&[b"h3"]).map_err(io::Error::other)?;
    config.set_max_idle_timeout(IDLE_TIMEOUT);
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_max_stream_window(window);
    config.set_initial_max_stream_data_uni(1 << 16);
    config.set_initial_max_streams_uni(10);
    Ok(config)
}

/// Opens a socket for datagrams to `server`.
pub(super) fn udp(source: Ipv4Addr, server: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((source, 0))?;
    socket.connect(server)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

impl Connection {
    /// Creates a connection on a socket of [`udp`]. Its Initial is sent by [`Connection::flush`].
    pub(super) fn new(socket: UdpSocket, config: &mut quiche::Config) -> io::Result<Self> {
        let addresses = RecvInfo { from: socket.peer_addr()?, to: socket.local_addr()? };
        let mut id = [0; 16];
        boring::rand::rand_bytes(&mut id).map_err(io::Error::other)?;
        let id = ConnectionId::from_ref(&id);
        let quic = quiche::connect(Some("localhost"), &id, addresses.to, addresses.from, config)
            .map_err(io::Error::other)?;
        Ok(Self { socket, addresses, quic, datagram: vec![0; LARGEST_DATAGRAM] })
    }

    /// Completes the handshake, unless `stopped` becomes true first.
    pub(super) fn establish(&mut self, stopped: impl Fn() -> bool) -> io::Result<()> {
        let deadline = Instant::now() + HANDSHAKE_TIME;
        while !self.quic.is_established() {
            if stopped() || Instant::now() > deadline {
                return Err(ErrorKind::TimedOut.into());
            }
            self.turn(TICK)?;
        }
        Ok(())
    }

    /// Sends all bytes on a stream, unless `stopped` becomes true first.
    pub(super) fn write(
        &mut self,
        stream: u64,
        mut bytes: &[u8],
        last: bool,
        stopped: impl Fn() -> bool,
    ) -> io::Result<()> {
        while !bytes.is_empty() && !stopped() {
            match self.quic.stream_send(stream, bytes, last) {
                Ok(count) if count > 0 => bytes = &bytes[count..],
                Ok(_) | Err(quiche::Error::Done | quiche::Error::StreamLimit) => self.turn(BLOCKED)?,
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        self.flush().map(drop)
    }

    /// Returns the number of request streams that the server allows to open now.
    pub(super) fn streams_left(&self) -> u32 {
        u32::try_from(self.quic.peer_streams_left_bidi()).unwrap_or(u32::MAX)
    }

    /// Requests a PING frame in the next packet.
    pub(super) fn ping(&mut self) -> io::Result<()> {
        self.quic.send_ack_eliciting().map_err(io::Error::other)
    }

    /// Sends RESET_STREAM and STOP_SENDING.
    pub(super) fn cancel(&mut self, stream: u64) {
        // The server may have ended the stream already.
        let _ = self.quic.stream_shutdown(stream, Shutdown::Write, REQUEST_CANCELLED);
        let _ = self.quic.stream_shutdown(stream, Shutdown::Read, REQUEST_CANCELLED);
    }

    /// Reads and discards at most `most` bytes of a stream.
    pub(super) fn read(&mut self, stream: u64, most: usize) {
        let _ = self.quic.stream_recv(stream, &mut self.datagram[..most]);
    }

    /// Reads and discards the received bytes of those streams that are `selected` by their identifier.
    pub(super) fn discard(&mut self, selected: impl Fn(u64) -> bool) {
        for stream in self.quic.readable().filter(|stream| selected(*stream)) {
            while self.quic.stream_recv(stream, &mut self.datagram).is_ok_and(|(_, last)| !last) {}
        }
    }

    /// Runs the connection for this time.
    pub(super) fn run_for(&mut self, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            self.turn(left)?;
            if left.is_zero() {
                return Ok(());
            }
        }
    }

    /// Sends pending packets, and processes those that arrive; waits at most `wait` for the first.
    pub(super) fn turn(&mut self, wait: Duration) -> io::Result<()> {
        self.flush()?;
        self.wait(self.quic.timeout().map_or(wait, |timeout| timeout.min(wait)))?;
        self.receive()?;
        if self.quic.timeout().is_some_and(|left| left.is_zero()) {
            self.quic.on_timeout();
        }
        self.flush()?;
        if self.quic.is_closed() || self.quic.is_draining() {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        Ok(())
    }

    /// Sends pending packets, and returns their number.
    pub(super) fn flush(&mut self) -> io::Result<usize> {
        let mut count = 0;
        loop {
            match self.quic.send(&mut self.datagram) {
                Ok((length, _)) => {
                    match self.socket.send(&self.datagram[..length]) {
                        // Treated as lost, as datagrams may be.
                        Err(error) if !is_passing(&error) => return Err(error),
                        _ => {}
                    }
                    count += 1;
                }
                Err(quiche::Error::Done) => return Ok(count),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Waits until a datagram arrives; by whole milliseconds, rounded up.
    fn wait(&self, time: Duration) -> io::Result<()> {
        let milliseconds = time.as_micros().div_ceil(1000).min(1000) as u16;
        let mut sockets = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut sockets, PollTimeout::from(milliseconds)) {
            Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn receive(&mut self) -> io::Result<()> {
        for _ in 0..BATCH {
            match self.socket.recv(&mut self.datagram) {
                // Unreadable datagrams are dropped, as QUIC requires.
                Ok(length) => _ = self.quic.recv(&mut self.datagram[..length], self.addresses),
                Err(error) if is_passing(&error) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Connection {
    /// Closes the connection, as the kernel closes one of TCP.
    fn drop(&mut self) {
        if self.quic.is_established() {
            let _ = self.quic.close(true, NO_ERROR, b"");
            let _ = self.flush();
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
