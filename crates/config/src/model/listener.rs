use super::{Chain, Inspection, Place, TrustedProxies};
use std::net::SocketAddr;

/// Where connections come in: a socket that accepts them, or an address for which others hand them over.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Listener {
    /// For logs and statistics; if empty, the address stands in.
    pub name: String,
    /// IPv4 or IPv6; `[::]` accepts both.
    pub address: SocketAddr,
    /// Whether it has sockets. One without takes the connections that were going to its address and were redirected to
    /// a listener that hands them over, and no others.
    pub bound: bool,
    /// What becomes of connections that the machine's packet filter has redirected here.
    pub redirected: Redirected,
    /// Where the address was written.
    pub place: Place,
    /// How connections are served; at least one, and most have one for all.
    pub chains: Vec<Chain>,
    /// For connections that none of the others accepts; without it they are closed.
    pub default_chain: Option<Chain>,
    /// Whether a load balancer in front announces the client's address.
    pub proxy_protocol: ProxyProtocolIn,
    /// Whether connections are accepted over TCP. Without, there is HTTP/3 alone.
    pub tcp: bool,
    /// Whose word about the clients behind them is taken.
    pub trusted_proxies: TrustedProxies,
    /// What is looked at of what clients say first, where chains are told apart by it.
    pub inspection: Inspection,
    /// How much one listener takes on.
    pub limits: Limits,
}

/// Whether a load balancer in front announces the client's address (the PROXY protocol, v1 or v2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProxyProtocolIn {
    /// A header would be taken for garbage.
    #[default]
    Off,
    /// Every connection must begin with a header.
    Required,
}

/// What becomes of connections that were going elsewhere and that the machine's packet filter has redirected to a listener
/// (`REDIRECT` of iptables and nftables).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Redirected {
    /// The kernel is not asked: all connections were going here.
    #[default]
    Unasked,
    /// Their destination is where they were going.
    Served,
    /// The same, and the listener without sockets that has this address takes them, if there is one.
    HandedOver,
}

/// How much one listener takes on. Over a limit, new connections wait in the kernel's backlog or are closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Open connections, in all workers together.
    pub connections: usize,
    /// Handshakes in flight, in all workers together.
    pub handshakes: usize,
}

impl Listener {
    /// A listener with this chain for all, and everything else as it is when nothing is said.
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

    /// All chains, the one for the others last.
    pub fn all_chains(&self) -> impl Iterator<Item = &Chain> {
        self.chains.iter().chain(&self.default_chain)
    }

    /// Whether any of them serves HTTP/3, so that the address has UDP sockets.
    pub fn has_http3(&self) -> bool {
        self.all_chains().any(|chain| chain.http3.is_some())
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 100_000, handshakes: 20_000 }
    }
}
