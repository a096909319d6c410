//! Filter chains: conditions on connections, and the settings with which matching connections are served.

use super::{
    AccessRules, CertificateSource, ClientAuth, Http, Http3, Mode, Network, Place, Source, Timeouts,
    TlsPolicy, Weighted,
};
use std::sync::Arc;

/// A filter chain: the settings with which connections are served. A listener has one, or several that are selected
/// by the first bytes from the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// The name, for logs and statistics; may be empty.
    pub name: String,
    /// Conditions on connections.
    pub accepts: ChainMatch,
    /// TLS with its certificates; `None` is plain text. Shared, so that an unchanged value is recognized at once.
    pub tls: Option<Arc<Tls>>,
    /// The handling of the decrypted data.
    pub serve: Serve,
    /// HTTP/3 on the same address, over UDP; `None` for no HTTP/3.
    pub http3: Option<Http3>,
    /// Access rules of connections. A denied client is disconnected once it is identified.
    pub access: Vec<AccessRules>,
    /// Timeouts of slow peers.
    pub timeouts: Timeouts,
    /// The place of the chain in the configuration.
    pub place: Place,
}

/// Conditions on the connections of a chain. Empty fields and `None` match all connections.
///
/// The lookup follows Envoy, in the order of the fields. At each step the most specific matching value decides, and
/// chains with another value are excluded, even if a later step then finds no chain. Two chains must not accept the
/// same connections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainMatch {
    /// The port that the client has connected to; it differs from the listener's for redirected connections.
    pub destination_port: Option<u16>,
    /// The networks of the address that the client has connected to; the longest prefix is the most specific.
    pub destinations: Vec<Network>,
    /// The client's SNI, in lower case: `example.com`, or `*.example.com` for any number of labels in front.
    pub server_names: Vec<String>,
    /// Whether the client begins with a TLS handshake.
    pub transport: Option<Transport>,
    /// Any of the ALPN protocols that the client offers, or, without TLS, its HTTP version (see
    /// [`Inspection::http`](super::Inspection::http)).
    pub application_protocols: Vec<String>,
    /// The networks of the peer, regardless of the client that a load balancer announces.
    pub peers: Vec<Network>,
    /// Whether the client is on this machine.
    pub origin: Option<ClientOrigin>,
    /// The networks of the client.
    pub clients: Vec<Network>,
    /// The client's ports.
    pub client_ports: Vec<u16>,
}

/// The transport protocol with which a client begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A TLS handshake.
    Tls,
    /// Anything else.
    Plain,
}

/// The location of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientOrigin {
    /// A client at a loopback address, or at the address that it has connected to.
    ThisMachine,
    /// Any other client.
    Elsewhere,
}

/// TLS of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tls {
    /// The first is the default for clients that send no SNI, or an unknown one. At least one.
    pub certificates: Vec<Arc<CertificateSource>>,
    /// Versions, groups, client certificates.
    pub policy: TlsPolicy,
}

/// The handling of received data, after TLS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Serve {
    /// HTTP/1.1 or HTTP/2, selected by ALPN with TLS, and by the client's first bytes without.
    Http(Http),
    /// A byte stream, which is forwarded unchanged; each connection goes to one of these upstreams.
    Tcp(Vec<Weighted>),
}

impl Chain {
    /// Returns a chain for every connection, with default settings.
    pub fn new(tls: Option<Tls>, serve: Serve, place: Place) -> Self {
        Self {
            name: String::new(),
            accepts: ChainMatch::default(),
            tls: tls.map(Arc::new),
            serve,
            http3: None,
            access: Vec::new(),
            timeouts: Timeouts::default(),
            place,
        }
    }

    /// Returns the protocol inside TLS.
    pub fn mode(&self) -> Mode {
        match self.serve {
            Serve::Http(_) => Mode::Http,
            Serve::Tcp(_) => Mode::Tcp,
        }
    }
}

impl Chain {
    /// Returns the HTTP settings, if the chain serves HTTP.
    pub fn http(&self) -> Option<&Http> {
        match &self.serve {
            Serve::Http(http) => Some(http),
            Serve::Tcp(_) => None,
        }
    }
}

impl ChainMatch {
    /// Returns whether every connection is accepted, so that the first bytes need not be inspected.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Tls {
    /// Returns all sources: files and inline values.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let certificates = self.certificates.iter().flat_map(|certificate| certificate.sources());
        let check = match &self.policy.client_auth {
            ClientAuth::Off => None,
            ClientAuth::Optional(check) | ClientAuth::Required(check) => Some(check),
        };
        certificates.chain(check.into_iter().flat_map(|check| check.sources()))
    }
}
