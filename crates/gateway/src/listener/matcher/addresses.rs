use std::net::SocketAddr;

/// Source and destination of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// Address of the peer that has opened the connection to this machine.
    pub(crate) peer: SocketAddr,
    /// Address of the client: the peer, or the address announced by a load balancer.
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}
