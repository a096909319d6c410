//! One connection of the load, from connect to the last byte of the last response.

use std::{
    fmt, io,
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, Instant},
};

use boring::ssl::{Error, Ssl, SslContext, SslSession, SslStream};
use mio::net::TcpStream;
use nix::sys::socket::{setsockopt, sockopt::IpBindAddressNoPort};
use socket2::{Domain, Socket, Type};

use super::Negotiated;

const HOST: &str = "localhost";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// Longest response that is still believed.
const MAX_RESPONSE: usize = 1 << 20;
const MAX_HEADERS: usize = 64;

/// How far a connection has come, and so where it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// TCP and TLS handshake.
    Handshake,
    /// Sending a request.
    Request,
    /// Reading its response.
    Response,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Handshake => "handshake",
            Self::Request => "request",
            Self::Response => "response",
        })
    }
}

/// Why a connection failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What it was doing.
    pub stage: Stage,
    /// What went wrong, for a person.
    pub reason: String,
}

/// Whether [`Connection::advance`] has anything left to do.
pub(super) enum Progress {
    Waiting,
    Done,
}

#[derive(Debug)]
pub(super) struct Connection {
    stream: SslStream<TcpStream>,
    stage: Stage,
    opened: Instant,
    handshake: Duration,
    exchange: Duration,
    requests_left: u32,
    response: Vec<u8>,
}

impl Connection {
    /// Connects from `source` (any address when `None`) without waiting.
    pub(super) fn open(
        context: &SslContext,
        target: SocketAddr,
        source: Option<Ipv4Addr>,
        requests: u32,
        session: Option<SslSession>,
    ) -> Result<Self, Failure> {
        let opened = Instant::now();
        let failed = |reason: String| Failure { stage: Stage::Handshake, reason };
        let socket = connect(target, source).map_err(|error| failed(error.to_string()))?;
        let mut ssl = Ssl::new(context).map_err(|error| failed(error.to_string()))?;
        ssl.set_hostname(HOST).map_err(|error| failed(error.to_string()))?;
        if let Some(session) = session {
            // SAFETY: it came from a connection of the same context.
            unsafe { ssl.set_session(&session).map_err(|error| failed(error.to_string()))? };
        }
        Ok(Self {
            stream: SslStream::new(ssl, socket).map_err(|error| failed(error.to_string()))?,
            stage: Stage::Handshake,
            opened,
            handshake: Duration::ZERO,
            exchange: Duration::ZERO,
            requests_left: requests,
            response: Vec::new(),
        })
    }

    /// Goes on until the network makes it wait or all responses have been read.
    pub(super) fn advance(&mut self) -> Result<Progress, Failure> {
        let stage = self.stage;
        match self.try_advance() {
            Ok(()) => Ok(Progress::Done),
            Err(Stop::Wait) => Ok(Progress::Waiting),
            Err(Stop::Fail(reason)) => Err(Failure { stage: self.stage.max(stage), reason }),
        }
    }

    fn try_advance(&mut self) -> Result<(), Stop> {
        loop {
            match self.stage {
                Stage::Handshake => {
                    self.stream.connect()?;
                    self.handshake = self.opened.elapsed();
                    if self.requests_left == 0 {
                        break;
                    }
                    self.stage = Stage::Request;
                }
                Stage::Request => {
                    // BoringSSL writes all or, when it must wait, nothing.
                    self.stream.ssl_write(REQUEST)?;
                    self.stage = Stage::Response;
                }
                Stage::Response => {
                    self.read_response()?;
                    self.requests_left -= 1;
                    if self.requests_left == 0 {
                        break;
                    }
                    self.stage = Stage::Request;
                }
            }
        }
        self.exchange = self.opened.elapsed();
        Ok(())
    }

    fn read_response(&mut self) -> Result<(), Stop> {
        let mut buffer = [0; 4096];
        loop {
            match self.stream.ssl_read(&mut buffer)? {
                0 => return Err(Stop::Fail("closed in the middle of a response".into())),
                read => self.response.extend_from_slice(&buffer[..read]),
            }
            if is_complete(&self.response)? {
                self.response.clear();
                return Ok(());
            }
        }
    }

    /// Closes in good order: close_notify, then FIN.
    pub(super) fn close(mut self) {
        // The peer may have left already; there is nobody to tell.
        let _ = self.stream.shutdown();
    }

    /// Whether the peer has left the connection open.
    pub(super) fn is_open(&mut self) -> bool {
        let mut buffer = [0; 256];
        matches!(self.stream.ssl_read(&mut buffer), Err(error) if error.would_block())
    }

    pub(super) fn socket(&mut self) -> &mut TcpStream {
        self.stream.get_mut()
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    pub(super) fn timed_out(&self) -> Failure {
        Failure { stage: self.stage, reason: "timed out".into() }
    }

    /// From connect to the end of the handshake.
    pub(super) fn handshake_time(&self) -> Duration {
        self.handshake
    }

    /// From connect to the last byte of the last response.
    pub(super) fn exchange_time(&self) -> Duration {
        self.exchange
    }

    /// The session that this connection has resumed.
    pub(super) fn resumed_session(&self) -> Option<SslSession> {
        let ssl = self.stream.ssl();
        ssl.session_reused().then(|| ssl.session().map(ToOwned::to_owned)).flatten()
    }

    pub(super) fn resumed(&self) -> bool {
        self.stream.ssl().session_reused()
    }

    pub(super) fn negotiated(&self) -> Negotiated {
        let ssl = self.stream.ssl();
        Negotiated {
            version: ssl.version_str(),
            cipher: ssl.current_cipher().map_or("none", |cipher| cipher.name()),
            group: ssl.curve_name().unwrap_or("none"),
            signature: ssl
                .peer_signature_algorithm()
                .and_then(|algorithm| algorithm.name())
                .unwrap_or("none"),
        }
    }
}

/// Why a connection does not go on now.
enum Stop {
    Wait,
    Fail(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        if error.would_block() { Self::Wait } else { Self::Fail(error.to_string()) }
    }
}

fn connect(target: SocketAddr, source: Option<Ipv4Addr>) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM.nonblocking(), None)?;
    socket.set_tcp_nodelay(true)?;
    if let Some(source) = source {
        // Let connect choose the port: it may take one that other destinations use, bind may not.
        setsockopt(&socket, IpBindAddressNoPort, &true)?;
        socket.bind(&SocketAddr::from((source, 0)).into())?;
    }
    match socket.connect(&target.into()) {
        Err(error) if error.raw_os_error() != Some(nix::libc::EINPROGRESS) => Err(error),
        _ => Ok(TcpStream::from_std(socket.into())),
    }
}

/// Whether `response` holds a whole HTTP/1.1 response with status 200 and a Content-Length.
fn is_complete(response: &[u8]) -> Result<bool, Stop> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let head_length = match head.parse(response) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if response.len() <= MAX_RESPONSE => return Ok(false),
        Ok(httparse::Status::Partial) => return Err(Stop::Fail("endless response head".into())),
        Err(error) => return Err(Stop::Fail(format!("not HTTP/1.1: {error}"))),
    };
    if head.code != Some(200) {
        return Err(Stop::Fail(format!("status {}", head.code.unwrap_or_default())));
    }
    let body_length = content_length(head.headers)
        .filter(|length| *length <= MAX_RESPONSE)
        .ok_or_else(|| Stop::Fail("no usable Content-Length".into()))?;
    Ok(response.len() >= head_length + body_length)
}

fn content_length(headers: &[httparse::Header<'_>]) -> Option<usize> {
    let header = headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"))?;
    str::from_utf8(header.value).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(response: &str) -> Result<bool, String> {
        is_complete(response.as_bytes()).map_err(|stop| match stop {
            Stop::Fail(reason) => reason,
            Stop::Wait => unreachable!("nothing to wait for"),
        })
    }

    #[test]
    fn a_response_is_complete_with_its_last_byte() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
        for end in 0..whole.len() {
            assert_eq!(complete(&whole[..end]), Ok(false), "{:?}", &whole[..end]);
        }
        assert_eq!(complete(whole), Ok(true));
    }

    #[test]
    fn what_is_not_a_good_response_is_an_error() {
        assert_eq!(complete("HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"), Err("status 503".into()));
        assert!(complete("HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(complete("HTTP/1.1 200 OK\r\ncontent-length: 99999999\r\n\r\n").is_err());
        assert!(complete("\x15\x03\x01").is_err());
    }
}
