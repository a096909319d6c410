//! Source ports of connections from a configured source address.

use std::{io, os::fd::AsRawFd};
use tokio::net::TcpSocket;

/// Makes the kernel choose the port on connect, by both endpoints of the connection, and not on bind. Otherwise the
/// connections from an address, to all destinations together, would be limited by its number of ports (ip(7),
/// `IP_BIND_ADDRESS_NO_PORT`).
pub(super) fn choose_late(socket: &TcpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the value has the given length; the kernel copies it.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
