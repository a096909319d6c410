use std::net::SocketAddr;

/// Selection of the server by the original destination of each redirected connection. There is no server for
/// connections that were not redirected, or whose destination was the gateway itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct OriginalDestination {
    /// The port that replaces the original one.
    pub port: Option<u16>,
}

impl OriginalDestination {
    /// Returns the server for a connection with this destination.
    pub fn server(&self, destination: SocketAddr) -> SocketAddr {
        SocketAddr::new(destination.ip(), self.port.unwrap_or(destination.port()))
    }
}
