use std::net::SocketAddr;

/// The server is where each connection was going before it was redirected here. Connections that were not redirected
/// have none, and so have those that were going to the gateway itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OriginalDestination {
    /// This port in the place of the one that the connection was going to.
    pub port: Option<u16>,
}

impl OriginalDestination {
    /// The server of a connection that was going there.
    pub fn server(&self, destination: SocketAddr) -> SocketAddr {
        SocketAddr::new(destination.ip(), self.port.unwrap_or(destination.port()))
    }
}
