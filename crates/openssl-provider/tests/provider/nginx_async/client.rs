//! Clients with BoringSSL's TLS: complete exchanges, and clients that disconnect at any point.

use crate::support::Site;
use boring::ssl::{SslConnector, SslMethod, SslStream, SslVersion};
use std::{
    io::{self, Read, Write},
    net::TcpStream,
    os::fd::AsRawFd,
    time::Duration,
};

/// Longer than any step takes, even on a loaded machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(180);

pub(crate) struct Client {
    connector: SslConnector,
    port: u16,
    /// Key exchange groups in order of preference; by default BoringSSL's.
    groups: Option<&'static str>,
    /// Bytes sent before the handshake.
    preamble: &'static str,
}

impl Client {
    /// Creates a client that trusts NAME.pem; `version` is 1.2, 1.3, or h2 for HTTP/2's ALPN.
    pub(crate) fn new(site: &Site, name: &str, port: u16, version: &str) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a context");
        builder.set_ca_file(site.path(&format!("{name}.pem"))).expect("a certificate");
        match version {
            "1.2" => builder.set_max_proto_version(Some(SslVersion::TLS1_2)).expect("a version"),
            "1.3" => builder.set_min_proto_version(Some(SslVersion::TLS1_3)).expect("a version"),
            _ => builder.set_alpn_protos(b"\x02h2").expect("a protocol"),
        }
        Self { connector: builder.build(), port, groups: None, preamble: "" }
    }

    pub(super) fn with_preamble(self, preamble: &'static str) -> Self {
        Self { preamble, ..self }
    }

    pub(crate) fn with_groups(self, groups: &'static str) -> Self {
        Self { groups: Some(groups), ..self }
    }

    /// Returns the group of a handshake's key exchange, by its number in TLS.
    pub(crate) fn agreed_group(&self) -> io::Result<Option<u16>> {
        Ok(self.hold()?.ssl().curve())
    }

    /// Returns the response body of one request on a new connection.
    pub(super) fn get(&self, path: &str) -> io::Result<String> {
        self.get_for("localhost", path)
    }

    pub(super) fn get_for(&self, name: &str, path: &str) -> io::Result<String> {
        let mut tls = self.connect(name, self.open()?)?;
        write!(tls, "GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")?;
        let mut answer = String::new();
        tls.read_to_string(&mut answer)?;
        body(&answer)
    }

    /// Returns the bytes that the server sends until it closes, without a request.
    pub(super) fn read_all(&self) -> io::Result<String> {
        let mut tls = self.connect("localhost", self.open()?)?;
        let mut answer = String::new();
        tls.read_to_string(&mut answer)?;
        Ok(answer)
    }

    /// Opens a connection, and sends no request.
    pub(super) fn hold(&self) -> io::Result<SslStream<TcpStream>> {
        self.connect("localhost", self.open()?)
    }

    /// Returns the protocol negotiated by ALPN.
    pub(super) fn negotiated(&self) -> io::Result<String> {
        let tls = self.hold()?;
        Ok(String::from_utf8_lossy(tls.ssl().selected_alpn_protocol().unwrap_or_default()).into_owned())
    }

    /// Disconnects once `bytes` have been transferred in either direction, with a reset if `abruptly`.
    pub(super) fn leave_after(&self, bytes: usize, abruptly: bool) -> io::Result<()> {
        let socket = self.open()?;
        if abruptly {
            reset_on_close(&socket);
        }
        if let Ok(mut tls) = self.connect("localhost", Short { socket, left: bytes }) {
            let _ = tls.write_all(b"GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n");
            let _ = tls.read(&mut [0; 256]);
        }
        Ok(())
    }

    /// Disconnects `after` its request, with or without a response.
    pub(super) fn leave_with_request(&self, after: Duration) -> io::Result<()> {
        let socket = self.open()?;
        reset_on_close(&socket);
        let mut tls = self.connect("localhost", socket)?;
        tls.write_all(b"GET /left HTTP/1.1\r\nHost: localhost\r\n\r\n")?;
        std::thread::sleep(after);
        Ok(())
    }

    /// Sends `bytes` and then nothing, until the server closes the connection.
    pub(super) fn fall_silent(&self, bytes: usize) -> io::Result<()> {
        let mut socket = self.open()?;
        let _ = self.connect("localhost", Short { socket: socket.try_clone()?, left: bytes });
        socket.read_to_end(&mut Vec::new()).map(drop)
    }

    fn open(&self) -> io::Result<TcpStream> {
        let mut socket = TcpStream::connect(("127.0.0.1", self.port))?;
        socket.set_read_timeout(Some(TIMEOUT))?;
        socket.write_all(self.preamble.as_bytes())?;
        Ok(socket)
    }

    fn connect<S: Read + Write>(&self, name: &str, stream: S) -> io::Result<SslStream<S>> {
        let mut configured = self.connector.configure().map_err(io::Error::other)?;
        configured.set_verify_hostname(name == "localhost");
        if let Some(groups) = self.groups {
            configured.set_curves_list(groups).map_err(io::Error::other)?;
        }
        configured.connect(name, stream).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Returns the response to a request without TLS.
pub(super) fn get_plain(port: u16) -> io::Result<String> {
    let mut socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.write_all(b"GET / HTTP/1.0\r\n\r\n")?;
    let mut answer = String::new();
    socket.read_to_string(&mut answer)?;
    body(&answer)
}

fn body(answer: &str) -> io::Result<String> {
    let split = answer.split_once("\r\n\r\n").filter(|(head, _)| head.contains(" 200 "));
    split
        .map(|(_, body)| body.to_owned())
        .ok_or_else(|| io::Error::other(format!("unexpected response: {answer}")))
}

/// A socket that fails after a number of bytes.
struct Short {
    socket: TcpStream,
    left: usize,
}

impl Short {
    fn take(&mut self, wanted: usize) -> io::Result<usize> {
        let most = wanted.min(self.left);
        if most == 0 { Err(io::ErrorKind::BrokenPipe.into()) } else { Ok(most) }
    }
}

impl Read for Short {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.take(buffer.len())?;
        let count = self.socket.read(&mut buffer[..most])?;
        self.left -= count;
        Ok(count)
    }
}

impl Write for Short {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let most = self.take(buffer.len())?;
        let count = self.socket.write(&buffer[..most])?;
        self.left -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

fn reset_on_close(socket: &TcpStream) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let size = libc::socklen_t::try_from(size_of::<libc::linger>()).expect("a size");
    // SAFETY: the option's value is valid, with its size.
    unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            (&raw const linger).cast(),
            size,
        );
    }
}
