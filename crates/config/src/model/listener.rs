use super::{Chain, Inspection, Place, TrustedProxies};
use std::{net::SocketAddr, num::NonZeroUsize};

/// A listener: a socket that accepts connections, or an address whose connections other listeners hand over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    /// The name, for logs and statistics; if empty, the address is used.
    pub name: String,
    /// The address, IPv4 or IPv6; `[::]` accepts both.
    pub address: SocketAddr,
    /// Whether it has sockets. A listener without sockets receives only connections to its address that were
    /// redirected to a listener that hands them over.
    pub bound: bool,
    /// The handling of connections that the machine's packet filter has redirected here.
    pub redirected: Redirected,
    /// The place of the address in the configuration.
    pub place: Place,
    /// The filter chains; at least one, and often just one for all connections.
    pub chains: Vec<Chain>,
    /// The chain for connections that no other chain accepts; without it they are closed.
    pub default_chain: Option<Chain>,
    /// Whether a load balancer in front announces the client's address.
    pub proxy_protocol: ProxyProtocolIn,
    /// Whether TCP connections are accepted; otherwise there is only HTTP/3.
    pub tcp: bool,
    /// The proxies whose information about clients is trusted.
    pub trusted_proxies: TrustedProxies,
    /// Inspection of the clients' first bytes, if chains depend on it.
    pub inspection: Inspection,
    /// The limits of the listener.
    pub limits: Limits,
}

/// Whether a load balancer in front announces the client's address (the PROXY protocol, v1 or v2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProxyProtocolIn {
    /// No header; one would be treated as invalid data.
    #[default]
    Off,
    /// Every connection must begin with a header.
    Required,
}

/// The handling of connections with another destination that the machine's packet filter has redirected to a listener
/// (`REDIRECT` of iptables and nftables).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Redirected {
    /// The kernel is not queried: the listener is the destination of all connections.
    #[default]
    Unasked,
    /// The original destination is used as their destination.
    Served,
    /// Like `Served`, but the connection is handed over to the listener without sockets at that address, if there is
    /// one.
    HandedOver,
}

/// Limits of a listener. Beyond a limit, new connections wait in the kernel's backlog or are closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum number of open connections, over all workers.
    pub connections: usize,
    /// Maximum number of handshakes in flight, over all workers.
    pub handshakes: usize,
    /// Maximum number of open connections of a client: of an IPv4 address, or an IPv6 network of 64 bits.
    pub connections_per_client: Option<NonZeroUsize>,
}

impl Listener {
    /// Returns a listener with this chain for all connections, and default settings.
    pub fn new(address: SocketAddr, place: Place, chain: Chain) -> Self {
        Self {
            name: String::new(),
            address,
            bound: true,
            redirected: Redirected::Unasked,
            place,
            chains: vec![chain],
            default_chain: None,
            proxy_protocol: ProxyProtocolIn::Off,
            tcp: true,
            trusted_proxies: TrustedProxies::default(),
            inspection: Inspection::default(),
            limits: Limits::default(),
        }
    }

    /// Returns all chains, the default chain last.
    pub fn all_chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.iter().chain(&self.default_chain)
    }

    /// Returns whether a chain serves HTTP/3, so that the address has UDP sockets.
    pub fn has_http3(&self) -> bool {
        self.all_chains().any(|chain| chain.http3.is_some())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 100_000, handshakes: 20_000, connections_per_client: None }
    }
}
