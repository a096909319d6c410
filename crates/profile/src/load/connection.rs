//! One connection of the load, from connect to the last byte of the last response.

use super::{
    failure::{Failure, Stage},
    negotiated::Negotiated,
    response::{Progress as Body, Reader},
};
use boring::ssl::{Error, ErrorCode, Ssl, SslContext, SslSession, SslStream};
use mio::net::TcpStream;
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use socket2::{Domain, Socket, Type};
use std::{
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

/// State of a connection after [`Connection::advance`].
pub(super) enum Progress {
    Waiting,
    Done,
}

/// Parameters of one connection.
pub(super) struct Errand<'a> {
    pub(super) target: SocketAddr,
    pub(super) source: Option<Ipv4Addr>,
    pub(super) name: &'a str,
    pub(super) session: Option<SslSession>,
    /// The request, sent `requests` times.
    pub(super) request: &'a [u8],
    pub(super) requests: u32,
    /// Start of the latency measurement.
    pub(super) due: Instant,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: SslStream<Wire>,
    stage: Stage,
    due: Instant,
    opened: Instant,
    handshake: Duration,
    exchange: Duration,
    request: Box<[u8]>,
    requests_left: u32,
    response: Reader,
    /// Whether the server has sent close_notify, so that no close is needed.
    closed: bool,
}

impl Connection {
    /// Starts to connect without blocking.
    pub(super) fn open(context: &SslContext, errand: Errand<'_>) -> Result<Self, Failure> {
        let opened = Instant::now();
        let failed = |reason: String| Failure { stage: Stage::Connect, reason };
        let socket = connect(errand.target, errand.source).map_err(|error| failed(explained(&error)))?;
        let boring = |error: boring::error::ErrorStack| failed(error.to_string());
        let mut ssl = Ssl::new(context).map_err(boring)?;
        if let Some(name) = server_name(errand.name) {
            ssl.set_hostname(name).map_err(boring)?;
        }
        if let Some(session) = &errand.session {
            // SAFETY: the session was made by a connection of this context.
            unsafe { ssl.set_session(session) }.map_err(boring)?;
        }
        let wire = Wire { socket, received: 0, sent: 0 };
        Ok(Self {
            stream: SslStream::new(ssl, wire).map_err(boring)?,
            stage: Stage::Connect,
            due: errand.due,
            opened,
            handshake: Duration::ZERO,
            exchange: Duration::ZERO,
            request: errand.request.into(),
            requests_left: errand.requests,
            response: Reader::default(),
            closed: false,
        })
    }

    /// Advances until an operation would block or all responses have been read.
    pub(super) fn advance(&mut self) -> Result<Progress, Failure> {
        match self.try_advance() {
            Ok(()) => Ok(Progress::Done),
            Err(Stop::Wait) => Ok(Progress::Waiting),
            Err(Stop::Fail(reason)) => Err(Failure { stage: self.stage, reason }),
        }
    }

    fn try_advance(&mut self) -> Result<(), Stop> {
        loop {
            match self.stage {
                Stage::Connect => {
                    let socket = &self.stream.get_ref().socket;
                    if let Some(error) = socket.take_error().map_err(|error| Stop::Fail(error.to_string()))? {
                        return Err(Stop::Fail(explained(&error)));
                    }
                    if socket.peer_addr().is_err() {
                        return Err(Stop::Wait);
                    }
                    self.stage = Stage::Handshake;
                }
                Stage::Handshake => {
                    self.stream.connect()?;
                    self.handshake = self.due.elapsed();
                    if self.requests_left == 0 {
                        break;
                    }
                    self.stage = Stage::Request;
                }
                Stage::Request => {
                    // BoringSSL writes all bytes or, if it would block, none.
                    self.stream.ssl_write(&self.request)?;
                    self.stage = Stage::Response;
                }
                Stage::Response => {
                    let closes = self.read_response()?;
                    self.requests_left -= 1;
                    self.closed = closes;
                    if self.requests_left == 0 || closes {
                        break;
                    }
                    self.stage = Stage::Request;
                }
            }
        }
        self.exchange = self.due.elapsed();
        if self.requests_left > 0 {
            return Err(Stop::Fail(format!("closed with {} requests left", self.requests_left)));
        }
        Ok(())
    }

    /// Reads a response. Returns whether the server closes the connection afterwards.
    fn read_response(&mut self) -> Result<bool, Stop> {
        let mut buffer = [0; 16 * 1024];
        loop {
            let progress = match self.stream.ssl_read(&mut buffer) {
                Ok(read) if read > 0 => self.response.take(&buffer[..read]),
                Ok(_) => self.response.end(),
                Err(error) if error.code() == ErrorCode::ZERO_RETURN => self.response.end(),
                Err(error) => return Err(error.into()),
            };
            match progress.map_err(Stop::Fail)? {
                Body::Done { closes } => return Ok(closes),
                Body::More => {}
            }
        }
    }

    /// Closes the connection in order: close_notify, then FIN.
    pub(super) fn close(mut self) {
        if !self.closed {
            // The peer may have closed already; then there is no receiver.
            let _ = self.stream.shutdown();
        }
    }

    /// Returns whether the peer has left the connection open.
    pub(super) fn is_open(&mut self) -> bool {
        let mut buffer = [0; 256];
        matches!(self.stream.ssl_read(&mut buffer), Err(error) if error.would_block())
    }

    pub(super) fn socket(&mut self) -> &mut TcpStream {
        &mut self.stream.get_mut().socket
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    pub(super) fn timed_out(&self) -> Failure {
        Failure { stage: self.stage, reason: "timed out".into() }
    }

    /// Returns the time from when the connection was due to the end of the handshake.
    pub(super) fn handshake_time(&self) -> Duration {
        self.handshake
    }

    /// Returns the time from when the connection was due to the last byte of the last response.
    pub(super) fn exchange_time(&self) -> Duration {
        self.exchange
    }

    pub(super) fn resumed(&self) -> bool {
        self.stream.ssl().session_reused()
    }

    /// Returns the bytes received and sent at the TCP level.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let wire = self.stream.get_ref();
        (wire.received, wire.sent)
    }

    pub(super) fn negotiated(&self) -> Negotiated {
        Negotiated::from_ssl(self.stream.ssl())
    }
}

/// Returns the name for SNI, which is never an address (RFC 6066 section 3).
pub(super) fn server_name(host: &str) -> Option<&str> {
    host.parse::<IpAddr>().is_err().then_some(host)
}

/// The socket, with byte counters.
#[derive(Debug)]
struct Wire {
    socket: TcpStream,
    received: u64,
    sent: u64,
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.socket.read(buffer)?;
        self.received += read as u64;
        Ok(read)
    }
}

impl Write for Wire {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(buffer)?;
        self.sent += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reason that a connection cannot proceed now.
enum Stop {
    Wait,
    Fail(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.would_block() { Self::Wait } else { Self::Fail(reason(&error)) }
    }
}

/// Describes a TLS error, with equal text for equal causes.
pub(super) fn reason(error: &Error) -> String {
    if let Some(error) = error.io_error() {
        return explained(error);
    }
    match error.ssl_error().and_then(|errors| errors.errors().first()) {
        Some(error) => error.reason().unwrap_or("unknown TLS error").to_lowercase().replace('_', " "),
        None => "closed by the server".to_owned(),
    }
}

/// Describes an I/O error, with a remedy where it is not obvious.
fn explained(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(nix::libc::EMFILE) => {
            "no file descriptors left: raise the limit (ulimit -n) or use fewer connections".to_owned()
        }
        Some(nix::libc::EADDRNOTAVAIL) => {
            "no local ports left: too many connections in too short a time for one address".to_owned()
        }
        _ => match error.kind() {
            io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
            io::ErrorKind::ConnectionReset => "connection reset".to_owned(),
            io::ErrorKind::UnexpectedEof => "closed by the server".to_owned(),
            _ => error.to_string(),
        },
    }
}

fn connect(target: SocketAddr, source: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = source {
        // Let connect choose the port: unlike bind, it can reuse a port that is in use for other destinations.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::from((source, 0)).into())?;
    }
    match socket.connect(&target.into()) {
        Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}
