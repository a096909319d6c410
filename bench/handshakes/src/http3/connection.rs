//! One connection of the load.

use std::{
    io::{self, ErrorKind, IoSliceMut},
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::socket::{
    setsockopt,
    sockopt::{RcvBuf, RcvBufForce},
};
use quiche::{
    ConnectionId, RecvInfo,
    h3::{self, Event, Header, NameValue},
};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSocketState};

use super::load::Load;

/// Maximum size that the kernel coalesces from datagrams of one size.
const LARGEST: usize = 65_535;
const NO_ERROR: u64 = 0x100;
const RECEIVE_BUFFER: usize = 8 << 20;

/// Receive buffers.
pub(super) struct Buffers(Vec<Vec<u8>>);

impl Default for Buffers {
    fn default() -> Self {
        Self(vec![vec![0; LARGEST]; BATCH_SIZE])
    }
}

/// A connection that sends requests until it has all responses, and closes.
pub(super) struct Connection {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    quic: quiche::Connection,
    http: Option<h3::Connection>,
    request: Vec<Header>,
    plan: Plan,
    asked: u64,
    answers: u64,
    /// Body bytes received so far.
    received: u64,
}

struct Plan {
    requests: u64,
    streams: u64,
    body: u64,
}

impl Connection {
    pub(super) fn open(load: &Load, config: &mut quiche::Config) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(load.target)?;
        socket.set_nonblocking(true)?;
        // Avoid losing here the bursts of a fast server. Without the privilege, the largest size allowed to all
        // processes.
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).is_err() {
            setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER)?;
        }
        let state = UdpSocketState::new((&socket).into())?;
        let local = socket.local_addr()?;
        let mut id = [0; 16];
        boring::rand::rand_bytes(&mut id)?;
        let id = ConnectionId::from_ref(&id);
        let quic = quiche::connect(Some("localhost"), &id, local, load.target, config)?;
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "localhost"),
            (":path", load.path.as_str()),
            ("user-agent", "quadrille-bench"),
        ];
        let mut connection = Self {
            socket,
            state,
            local,
            quic,
            http: None,
            request: fields.map(|(name, value)| Header::new(name.as_bytes(), value.as_bytes())).into(),
            plan: Plan { requests: load.requests, streams: load.streams, body: load.body },
            asked: 0,
            answers: 0,
            received: 0,
        };
        connection.send()?;
        Ok(connection)
    }

    pub(super) fn socket(&self) -> &UdpSocket {
        &self.socket
    }

    pub(super) fn timeout(&self) -> Option<Duration> {
        self.quic.timeout()
    }

    /// Returns whether all responses were received and the connection is closed.
    pub(super) fn is_over(&self) -> bool {
        self.answers == self.plan.requests
    }

    pub(super) fn answers(&self) -> u64 {
        self.answers
    }

    /// Processes received datagrams, and sends pending ones.
    pub(super) fn turn(&mut self, buffers: &mut Buffers) -> Result<()> {
        self.receive(buffers)?;
        if self.timeout().is_some_and(|left| left.is_zero()) {
            self.quic.on_timeout();
        }
        if self.http.is_none() && self.quic.is_established() {
            ensure!(!self.quic.is_resumed(), "a handshake that should have been full was resumed");
            self.http = Some(h3::Connection::with_transport(&mut self.quic, &h3::Config::new()?)?);
        }
        self.take_answers()?;
        self.ask()?;
        if self.is_over() {
            let _ = self.quic.close(true, NO_ERROR, b"");
        } else if self.quic.is_closed() {
            let (ours, theirs) = (self.quic.local_error(), self.quic.peer_error());
            bail!("a connection ended after {} responses: {ours:?} {theirs:?}", self.answers);
        }
        self.send()
    }

    fn receive(&mut self, Buffers(all): &mut Buffers) -> Result<()> {
        let mut seen = [RecvMeta::default(); BATCH_SIZE];
        loop {
            let mut buffers: Vec<_> = all.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
            let count = match self.state.recv((&self.socket).into(), &mut buffers, &mut seen) {
                Ok(count) => count,
                Err(error) if is_passing(&error) => return Ok(()),
                Err(error) => return Err(error).context("cannot receive"),
            };
            for (buffer, seen) in all.iter_mut().zip(&seen[..count]) {
                for datagram in buffer[..seen.len].chunks_mut(seen.stride.max(1)) {
                    // Unreadable datagrams are dropped, as QUIC requires.
                    let _ = self.quic.recv(datagram, RecvInfo { from: seen.addr, to: self.local });
                }
            }
        }
    }

    fn take_answers(&mut self) -> Result<()> {
        let Some(http) = &mut self.http else { return Ok(()) };
        let mut data = [0; LARGEST];
        loop {
            match http.poll(&mut self.quic) {
                Ok((_, Event::Headers { list, .. })) => {
                    let status = list.iter().find(|field| field.name() == b":status");
                    ensure!(
                        status.is_some_and(|field| field.value() == b"200"),
                        "response status {status:?}"
                    );
                }
                Ok((stream, Event::Data)) => {
                    while let Ok(count) = http.recv_body(&mut self.quic, stream, &mut data) {
                        self.received += count as u64;
                    }
                }
                Ok((_, Event::Finished)) => self.answers += 1,
                Ok((_, Event::Reset(code))) => bail!("a response was reset: {code:#x}"),
                Ok(_) => {}
                Err(h3::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
        }
        let (received, most) = (self.received, self.asked * self.plan.body);
        ensure!(received <= most, "{received} bytes for {} requests", self.asked);
        ensure!(!self.is_over() || received == most, "{received} bytes instead of {most}");
        Ok(())
    }

    fn ask(&mut self) -> Result<()> {
        let Some(http) = &mut self.http else { return Ok(()) };
        while self.asked < self.plan.requests && self.asked - self.answers < self.plan.streams {
            match http.send_request(&mut self.quic, &self.request, true) {
                Ok(_) => self.asked += 1,
                Err(h3::Error::StreamBlocked | h3::Error::TransportError(quiche::Error::StreamLimit)) => {
                    return Ok(());
                }
                Err(error) => return Err(error).context("cannot send a request"),
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<()> {
        let mut datagram = [0; LARGEST];
        loop {
            match self.quic.send(&mut datagram) {
                Ok((length, _)) => match self.socket.send(&datagram[..length]) {
                    Ok(_) => {}
                    // Treated as lost, as datagrams may be.
                    Err(error) if is_passing(&error) => {}
                    Err(error) => return Err(error).context("cannot send"),
                },
                Err(quiche::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::ConnectionRefused)
}
