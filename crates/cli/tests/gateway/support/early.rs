//! Clients that send a request in their first flight (0-RTT), and copies of that flight.

use super::{Certificates, PATIENCE};
use boring::ssl::{ErrorCode, SslConnector, SslMethod, SslSession, SslStream};
use foreign_types::ForeignTypeRef;
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, Mutex},
};

/// A client that offers early data with sessions that allow it.
pub struct EarlyClient(SslConnector);

/// Outcome of an early request.
pub struct Early {
    /// Whether early data was accepted; if not, the request was sent again after the handshake.
    pub accepted: bool,
    /// Header and body of the response.
    pub answer: String,
    /// All bytes that the client sent before its first read.
    pub flight: Vec<u8>,
}

impl EarlyClient {
    pub fn new(certificates: &Certificates) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(certificates.ca()).expect("the CA");
        // SAFETY: the context is live; this sets a flag on it.
        unsafe { boring_sys::SSL_CTX_set_early_data_enabled(builder.as_ptr(), 1) };
        Self(builder.build())
    }

    /// Sends this request as early data if the session allows it, and reads the response.
    pub fn send(&self, address: SocketAddr, session: &SslSession, request: &str) -> io::Result<Early> {
        let tcp = TcpStream::connect(address)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_nodelay(true)?;
        let sent = Arc::default();
        let recorded = Recorded { tcp, sent: Arc::clone(&sent), over: false };
        let mut configuration = self.0.configure().map_err(io::Error::other)?;
        // SAFETY: the session came from a connection with the same settings.
        unsafe { configuration.set_session(session).map_err(io::Error::other)? };
        let connected = configuration.connect("localhost", recorded);
        let mut tls = connected.map_err(|error| io::Error::other(error.to_string()))?;
        tls.write_all(request.as_bytes())?;
        let flight = sent.lock().expect("the flight").clone();
        if let Err(error) = tls.do_handshake() {
            if error.code() != ErrorCode::from_raw(boring_sys::SSL_ERROR_EARLY_DATA_REJECTED) {
                return Err(io::Error::other(error.to_string()));
            }
            // SAFETY: the connection is live, and its early data was rejected.
            unsafe { boring_sys::SSL_reset_early_data_reject(tls.ssl().as_ptr()) };
            tls.do_handshake().map_err(|error| io::Error::other(error.to_string()))?;
            tls.write_all(request.as_bytes())?;
        }
        // SAFETY: the connection is live.
        let accepted = unsafe { boring_sys::SSL_early_data_accepted(tls.ssl().as_ptr()) == 1 };
        Ok(Early { accepted, answer: answer(&mut tls)?, flight })
    }
}

/// Reads to the end of the body, which has a length.
fn answer(tls: &mut SslStream<Recorded>) -> io::Result<String> {
    let mut text = String::new();
    let mut buffer = [0; 4096];
    loop {
        let count = tls.read(&mut buffer)?;
        text += &String::from_utf8_lossy(&buffer[..count]);
        let Some((header, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = header.to_ascii_lowercase().lines().find_map(|line| {
            line.strip_prefix("content-length: ").and_then(|length| length.parse::<usize>().ok())
        });
        if count == 0 || length.is_some_and(|length| body.len() >= length) {
            return Ok(text);
        }
    }
}

/// A stream that copies the bytes written before the first read.
struct Recorded {
    tcp: TcpStream,
    sent: Arc<Mutex<Vec<u8>>>,
    over: bool,
}

impl Read for Recorded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.over = true;
        self.tcp.read(buffer)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.tcp.write(bytes)?;
        if !self.over {
            self.sent.lock().expect("the flight").extend(&bytes[..count]);
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tcp.flush()
    }
}
