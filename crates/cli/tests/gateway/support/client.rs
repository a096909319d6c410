//! A small HTTP/1.1 client over TLS with control over what curl hides: single connections and their end.

use super::{Certificates, PATIENCE, Pair, Uninterrupted};
use boring::{
    pkey::Id,
    ssl::{SslConnector, SslFiletype, SslMethod, SslSignatureAlgorithm, SslStream},
};
use std::{
    io::{self, BufRead, BufReader, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    path::Path,
};

/// Connects to gateways, trusting one CA.
#[derive(Clone)]
pub struct Connector(SslConnector);

/// An HTTP/1.1 connection.
pub struct Client {
    stream: BufReader<SslStream<Uninterrupted>>,
}

/// The response to one request.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Connector {
    pub fn new(certificates: &Certificates) -> Self {
        Self::trusting(&certificates.ca())
    }

    pub fn trusting(ca: &Path) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(ca).expect("the CA");
        Self(builder.build())
    }

    /// Returns a connector that can verify these signatures only.
    pub fn offering(ca: &Path, algorithms: &[SslSignatureAlgorithm]) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(ca).expect("the CA");
        builder.set_verify_algorithm_prefs(algorithms).expect("algorithms");
        Self(builder.build())
    }

    /// Returns a connector with a client certificate.
    pub fn presenting(certificates: &Certificates, pair: &Pair) -> Self {
        let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
        builder.set_ca_file(certificates.ca()).expect("the CA");
        builder.set_certificate_chain_file(&pair.chain).expect("a certificate");
        builder.set_private_key_file(&pair.key, SslFiletype::PEM).expect("a key");
        Self(builder.build())
    }

    /// Returns the response to one request with these further header lines.
    #[track_caller]
    pub fn get(&self, address: SocketAddr, path: &str, headers: &str) -> Response {
        let mut client = self.http(address).expect("a connection");
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        client.send(request.as_bytes()).expect("a request");
        client.response().expect("a response")
    }

    /// Opens a TLS connection with a verified certificate.
    pub fn tls(&self, address: SocketAddr) -> io::Result<SslStream<Uninterrupted>> {
        self.tls_after(address, b"")
    }

    /// Opens a TLS connection that negotiates HTTP/2.
    pub fn http2(&self, address: SocketAddr) -> io::Result<SslStream<Uninterrupted>> {
        let tcp = TcpStream::connect(address)?;
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_nodelay(true)?;
        let mut configuration = self.0.configure()?;
        configuration.set_alpn_protos(b"\x02h2")?;
        configuration
            .connect("localhost", Uninterrupted(tcp))
            .map_err(|error| io::Error::other(error.to_string()))
    }

    /// Opens a TLS connection that starts with some plain bytes.
    pub fn tls_after(&self, address: SocketAddr, preamble: &[u8]) -> io::Result<SslStream<Uninterrupted>> {
        let mut tcp = TcpStream::connect(address)?;
        tcp.write_all(preamble)?;
        self.tls_over(tcp)
    }

    /// Opens a TLS connection over an existing TCP connection.
    pub fn tls_over(&self, tcp: TcpStream) -> io::Result<SslStream<Uninterrupted>> {
        self.named("localhost", tcp)
    }

    /// Opens a TLS connection to a server of this name.
    pub fn named(&self, name: &str, tcp: TcpStream) -> io::Result<SslStream<Uninterrupted>> {
        tcp.set_read_timeout(Some(PATIENCE))?;
        tcp.set_write_timeout(Some(PATIENCE))?;
        tcp.set_nodelay(true)?;
        self.0.connect(name, Uninterrupted(tcp)).map_err(|error| io::Error::other(error.to_string()))
    }

    pub fn http(&self, address: SocketAddr) -> io::Result<Client> {
        Ok(Client { stream: BufReader::new(self.tls(address)?) })
    }

    pub fn http_over(&self, tcp: TcpStream) -> io::Result<Client> {
        Ok(Client { stream: BufReader::new(self.tls_over(tcp)?) })
    }
}

impl Client {
    /// Sends a request without a body and reads the whole response.
    pub fn get(&mut self, path: &str) -> io::Result<Response> {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())?;
        self.response()
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads a response with a length, in chunks, or delimited by the end of the connection.
    pub fn response(&mut self) -> io::Result<Response> {
        let mut response = self.head()?;
        response.body = self.body(&response)?;
        Ok(response)
    }

    /// Reads a response without a body.
    pub fn head(&mut self) -> io::Result<Response> {
        let status = self.line()?;
        let status = status.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other("no status line"))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Ok(Response { status, headers, body: Vec::new() })
    }

    /// Returns the serial number of the gateway's certificate, in hexadecimal.
    pub fn serial(&self) -> String {
        let certificate = self.stream.get_ref().ssl().peer_certificate().expect("a certificate");
        let serial =
            certificate.serial_number().to_bn().expect("a number").to_hex_str().expect("hexadecimal");
        serial.to_string()
    }

    /// Returns the type of the key of the gateway's certificate.
    pub fn key_type(&self) -> Id {
        let certificate = self.stream.get_ref().ssl().peer_certificate().expect("a certificate");
        certificate.public_key().expect("a key").id()
    }

    /// Reads until the gateway closes; returns true if nothing arrived before that.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        let outcome = self.stream.read_to_end(&mut rest);
        // A connection without a close_notify is closed too; one that timed out is not.
        let open = |error: &io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        rest.is_empty() && !outcome.is_err_and(|error| open(&error))
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        if self.stream.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    }

    fn body(&mut self, response: &Response) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        if response.header("transfer-encoding") == Some("chunked") {
            loop {
                let size = usize::from_str_radix(&self.line()?, 16).map_err(io::Error::other)?;
                let mut chunk = vec![0; size];
                self.stream.read_exact(&mut chunk)?;
                self.line()?;
                if size == 0 {
                    return Ok(body);
                }
                body.append(&mut chunk);
            }
        }
        match response.header("content-length").map(str::parse) {
            Some(length) => {
                body.resize(length.map_err(io::Error::other)?, 0);
                self.stream.read_exact(&mut body)?;
            }
            None => drop(self.stream.read_to_end(&mut body)?),
        }
        Ok(body)
    }
}

impl Response {
    /// Returns the first header of this (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}
