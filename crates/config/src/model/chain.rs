//! How the connections of a listener are told apart, and how each kind is served.

use super::{
    AccessRules, CertificateSource, ClientAuth, Http, Http3, Mode, Network, Place, Source, Timeouts,
    TlsPolicy, Weighted,
};
use std::sync::Arc;

/// One way to serve connections. A listener has one, or several that are told apart by what a client says first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Chain {
    /// For logs and statistics; may be empty.
    pub name: String,
    /// Which connections it is for.
    pub accepts: ChainMatch,
    /// TLS with its certificates; `None` is plain text. Shared, so that what has not changed is recognised at once.
    pub tls: Option<Arc<Tls>>,
    /// What happens inside.
    pub serve: Serve,
    /// HTTP/3 on the same address, over UDP; `None` is none.
    pub http3: Option<Http3>,
    /// Who may connect. Whoever may not is disconnected once it is known who it is.
    pub access: Vec<AccessRules>,
    /// When slow peers are dropped.
    pub timeouts: Timeouts,
    /// Where the chain was written.
    pub place: Place,
}

/// Which connections a chain is for. What is empty or `None` does not matter.
///
/// Looked up as Envoy does, in the order of the fields. At each step the most specific value that any chain has decides,
/// and chains with another value are out of the game, even if a later step then finds none. Two chains may not accept
/// the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ChainMatch {
    /// The port that the client has connected to, which is another than the listener's where connections are redirected.
    pub destination_port: Option<u16>,
    /// The networks of the address that the client has connected to; the longest prefix is the most specific.
    pub destinations: Vec<Network>,
    /// The client's SNI, in lower case: `example.com`, or `*.example.com` for any number of labels in front.
    pub server_names: Vec<String>,
    /// Whether the client begins with a TLS handshake.
    pub transport: Option<Transport>,
    /// Any of the ALPN protocols that the client offers, or, without TLS, the version of HTTP that it speaks (see
    /// [`Inspection::http`](super::Inspection::http)).
    pub application_protocols: Vec<String>,
    /// The networks of the peer, whatever a load balancer announces.
    pub peers: Vec<Network>,
    /// Whether the client is on this machine.
    pub origin: Option<ClientOrigin>,
    /// The networks of the client.
    pub clients: Vec<Network>,
    /// The client's ports.
    pub client_ports: Vec<u16>,
}

/// What a client begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// A TLS handshake.
    Tls,
    /// Anything else.
    Plain,
}

/// Where a client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientOrigin {
    /// At a loopback address, or at the address that it has connected to.
    ThisMachine,
    /// Anywhere else.
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

/// What happens to what comes in, TLS taken off.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Serve {
    /// HTTP/1.1 and HTTP/2; with TLS by ALPN, without by what the client begins with.
    Http(Http),
    /// Bytes are passed as they are, each connection to one of these.
    Tcp(Vec<Weighted>),
}

impl Chain {
    /// Every connection, as it is when nothing is said.
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

    /// What is spoken inside.
    pub fn mode(&self) -> Mode {
        match self.serve {
            Serve::Http(_) => Mode::Http,
            Serve::Tcp(_) => Mode::Tcp,
        }
    }
}

impl Chain {
    /// HTTP, if that is what is served.
    pub fn http(&self) -> Option<&Http> {
        match &self.serve {
            Serve::Http(http) => Some(http),
            Serve::Tcp(_) => None,
        }
    }
}

impl ChainMatch {
    /// Whether every connection is accepted, so that nobody needs to look at what it begins with.
    pub fn is_any(&self) -> bool {
        *self == Self::default()
    }
}

impl Tls {
    /// Everything that is read from files or given in place.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        let certificates = self.certificates.iter().flat_map(|certificate| certificate.sources());
        let check = match &self.policy.client_auth {
            ClientAuth::Off => None,
            ClientAuth::Optional(check) | ClientAuth::Required(check) => Some(check),
        };
        certificates.chain(check.into_iter().flat_map(|check| check.sources()))
    }
}
