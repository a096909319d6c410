//! Ports of connections to servers that leave from an address of the configuration's.

use std::{io, os::fd::AsRawFd};
use tokio::net::TcpSocket;

/// Has the kernel choose the port when the socket is connected, by both ends, and not when it is bound: otherwise no more
/// connections could leave an address, to all servers together, than it has ports (ip(7), `IP_BIND_ADDRESS_NO_PORT`).
pub(super) fn choose_late(socket: &TcpSocket) -> io::Result<()> {
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open, and the value is as long as is said; the kernel copies it.
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
