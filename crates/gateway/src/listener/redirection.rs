//! Connections redirected here by the machine's packet filter: their original destination, and the listener that
//! takes them.

use super::filter_chain::ActiveListener;
use arc_swap::ArcSwap;
use quadrille_config::model::Redirected;
use socket2::SockRef;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    sync::Arc,
};
use tokio::net::TcpStream;

/// Listeners of a process by address, for redirected connections.
#[derive(Default)]
pub(crate) struct Destinations(ArcSwap<ByAddress>);

#[derive(Default)]
struct ByAddress {
    /// Listeners without sockets.
    unbound: HashMap<SocketAddr, Arc<ActiveListener>>,
    /// Bound addresses of the other listeners.
    bound: Vec<SocketAddr>,
}

/// Original destination of a redirected connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Redirection {
    pub(super) destination: SocketAddr,
    /// Whether the destination is a listener of this process; forwarding there would loop forever.
    is_own: bool,
}

impl Redirection {
    /// Returns the destination, if connections may be forwarded to it.
    pub(super) fn server(&self) -> Option<SocketAddr> {
        (!self.is_own).then_some(self.destination)
    }
}

impl Destinations {
    /// Replaces the listeners.
    pub(crate) fn set(&self, listeners: &[Arc<ActiveListener>]) {
        let mut found = ByAddress::default();
        for listener in listeners {
            match listener.is_bound() {
                true => found.bound.push(listener.bound),
                false => drop(found.unbound.insert(listener.address, Arc::clone(listener))),
            }
        }
        self.0.store(Arc::new(found));
    }

    /// Returns the listener that takes a connection, and its original destination if it was redirected.
    pub(super) fn arrive(
        &self,
        tcp: &TcpStream,
        listener: Arc<ActiveListener>,
        redirected: Redirected,
    ) -> (Arc<ActiveListener>, Option<Redirection>) {
        let original = match redirected {
            Redirected::Unasked => None,
            Redirected::Served | Redirected::HandedOver => original_destination(tcp),
        };
        let Some(destination) = original else { return (listener, None) };
        let known = self.0.load();
        let redirection = Redirection { destination, is_own: known.is_own(destination) };
        let taker = match redirected {
            Redirected::HandedOver => known.taker(destination).cloned(),
            Redirected::Unasked | Redirected::Served => None,
        };
        (taker.unwrap_or(listener), Some(redirection))
    }
}

impl ByAddress {
    /// Returns the listener without sockets at this address, or at its port on all addresses.
    fn taker(&self, destination: SocketAddr) -> Option<&Arc<ActiveListener>> {
        let at = |ip: IpAddr| self.unbound.get(&SocketAddr::new(ip, destination.port()));
        // `::` includes both families, as for bound sockets.
        let v4 = || at(Ipv4Addr::UNSPECIFIED.into()).filter(|_| destination.is_ipv4());
        at(destination.ip()).or_else(v4).or_else(|| at(Ipv6Addr::UNSPECIFIED.into()))
    }

    fn is_own(&self, destination: SocketAddr) -> bool {
        let here = self.bound.iter().filter(|bound| bound.port() == destination.port());
        here.into_iter().any(|bound| {
            let ip = bound.ip().to_canonical();
            ip == destination.ip() || ip.is_unspecified() && is_of_this_machine(destination.ip())
        })
    }
}

/// Queries the kernel for the original destination; `None` if the connection was not redirected.
fn original_destination(tcp: &TcpStream) -> Option<SocketAddr> {
    let local = canonical(tcp.local_addr().ok()?);
    let socket = SockRef::from(tcp);
    let asked = match local {
        SocketAddr::V4(_) => socket.original_dst_v4(),
        SocketAddr::V6(_) => socket.original_dst_v6(),
    };
    let original = canonical(asked.ok()?.as_socket()?);
    (original != local).then_some(original)
}

/// Removes scope and flow label, so that addresses can be compared.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns whether an address belongs to this machine: only those can be bound.
fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(bound: &str, destination: &str) -> bool {
        let bound = vec![bound.parse().expect("an address")];
        ByAddress { bound, ..ByAddress::default() }.is_own(destination.parse().expect("an address"))
    }

    #[test]
    fn own_destinations_are_detected() {
        assert!(own("0.0.0.0:15001", "127.0.0.1:15001"));
        assert!(own("[::]:15001", "127.0.0.2:15001"));
        assert!(own("[::]:15001", "[::1]:15001"));
        assert!(own("192.0.2.1:15001", "192.0.2.1:15001"), "a bound address is this process's own");
        assert!(!own("0.0.0.0:15001", "127.0.0.1:15006"));
        // A documentation address (RFC 5737) belongs to another machine.
        assert!(!own("0.0.0.0:15001", "192.0.2.1:15001"));
        assert!(!own("127.0.0.1:15001", "127.0.0.2:15001"));
    }

    #[tokio::test(flavor = "current_thread")]
    async fn a_connection_that_was_not_redirected_has_no_other_destination() {
        let listener = tokio::net::TcpListener::bind("[::]:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        for address in ["127.0.0.1", "::1"] {
            let address = SocketAddr::new(address.parse().expect("an address"), port);
            let _client = TcpStream::connect(address).await.expect("connecting");
            let (accepted, _) = listener.accept().await.expect("a connection");
            assert_eq!(original_destination(&accepted), None, "{address}");
        }
    }
}
