use super::{CertificateSource, Place, Route, TlsPolicy};
use std::{net::SocketAddr, time::Duration};

/// One socket that accepts TLS connections.
#[derive(Clone, Debug)]
pub struct Listener {
    /// IPv4 or IPv6; `[::]` accepts both.
    pub address: SocketAddr,
    /// Where the address was written.
    pub place: Place,
    /// What is spoken inside TLS.
    pub mode: Mode,
    /// The first is the default for clients that send no SNI, or an unknown one.
    pub certificates: Vec<CertificateSource>,
    /// Versions, groups, client certificates.
    pub tls: TlsPolicy,
    /// An exact host comes before a wildcard and a wildcard before none, then the longest path wins; the order in
    /// which they are written does not matter.
    pub routes: Vec<Route>,
    /// Whether a load balancer in front announces the client's address.
    pub proxy_protocol: ProxyProtocolIn,
    /// When slow peers are dropped.
    pub timeouts: Timeouts,
    /// How much one listener takes on.
    pub limits: Limits,
}

/// What is spoken inside TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// HTTP/1.1 and HTTP/2, by ALPN.
    #[default]
    Http,
    /// Bytes are passed to the upstream as they are.
    Tcp,
}

/// Whether a load balancer in front announces the client's address (the PROXY protocol, v1 or v2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyProtocolIn {
    /// A header would be taken for garbage.
    #[default]
    Off,
    /// Every connection must begin with a header.
    Required,
}

/// When slow peers are dropped.
#[derive(Clone, Debug)]
pub struct Timeouts {
    /// From accept to the end of the TLS handshake, a PROXY header included.
    pub handshake: Duration,
    /// From the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the end of the
    /// preface.
    pub header: Duration,
    /// Between requests on a kept-alive connection; in TCP mode, without a byte in either direction.
    pub idle: Duration,
}

/// How much one listener takes on. Over a limit, new connections wait in the kernel's backlog or are closed.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Open connections, in all workers together.
    pub connections: usize,
    /// Handshakes in flight, in all workers together.
    pub handshakes: usize,
}

impl Listener {
    /// A listener for HTTP with everything else as it is when nothing is said; it has no certificate and no route yet.
    pub fn new(address: SocketAddr, place: Place) -> Self {
        Self {
            address,
            place,
            mode: Mode::Http,
            certificates: Vec::new(),
            tls: TlsPolicy::new(Mode::Http),
            routes: Vec::new(),
            proxy_protocol: ProxyProtocolIn::Off,
            timeouts: Timeouts::default(),
            limits: Limits::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            header: Duration::from_secs(30),
            idle: Duration::from_secs(75),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 100_000, handshakes: 20_000 }
    }
}
