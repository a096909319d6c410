//! Listening sockets: one per event loop, so that the kernel distributes connections (`SO_REUSEPORT`).

use quadrille_config::{
    Diagnostic,
    model::{Place, Problem},
};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::{
    io,
    net::{SocketAddr, TcpListener},
};

/// Listen backlog; the kernel limits it to net.core.somaxconn.
const BACKLOG: i32 = 65_535;

/// Binds one socket for each of `count` event loops.
pub(crate) fn bind_all(
    address: SocketAddr,
    place: &Place,
    count: usize,
) -> Result<Vec<TcpListener>, Diagnostic> {
    let explain = |error| Diagnostic::new(place, explain(address, &error));
    // With SO_REUSEPORT from the start, a second gateway could share the port unnoticed. The first socket therefore
    // binds exclusively and shares the port only once it listens: of two processes at the same moment, one succeeds.
    let first = bind(address, false).map_err(explain)?;
    SockRef::from(&first).set_reuse_port(true).map_err(explain)?;
    let address = first.local_addr().map_err(explain)?;
    let others = (1..count).map(|_| bind(address, true).map_err(explain));
    std::iter::once(Ok(first)).chain(others).collect()
}

/// Binds one socket with exclusive use of its port.
pub(crate) fn bind_one(address: SocketAddr, place: &Place) -> Result<TcpListener, Diagnostic> {
    bind(address, false).map_err(|error| Diagnostic::new(place, explain(address, &error)))
}

fn bind(address: SocketAddr, shared: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_nonblocking(true)?;
    // Accepted sockets inherit it, which saves a system call per connection.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn explain(address: SocketAddr, error: &io::Error) -> Problem {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            format!(
                "another process listens there; find it with: ss -ltnp 'sport = :{}' (if it is a Quadrille \
                 to be replaced by this one, send it SIGUSR2)",
                address.port()
            )
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need CAP_NET_BIND_SERVICE, for example: setcap cap_net_bind_service=+ep quadrille".into()
        }
        io::ErrorKind::AddrNotAvailable => "no interface of this machine has that address".into(),
        _ => "choose another address".into(),
    };
    Problem::new(format!("cannot listen on {address}: {error}"), remedy)
}
