use std::net::SocketAddr;

/// Where a connection comes from and where it was going.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Addresses {
    /// Who has opened the connection to this machine.
    pub(crate) peer: SocketAddr,
    /// The same, or whom a load balancer announces.
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}
