//! Handover of listening sockets from one process to the next, so that a restart rejects no connections.
//!
//! ```text
//!  old process                                    new process
//!  SIGUSR2 ── starts ───────────────────────────> reads its configuration
//!     │ ── description of sockets, in JSON ─────> takes the listed sockets, opens others
//!     │ <──────────────────────────── "ready" ─── serves
//!  closes its copies, drains                         │
//!     │ <── datagrams of its QUIC connections ────── │   (both read UDP from the same sockets)
//! ```
//!
//! The sockets themselves are inherited, as are sockets that systemd opens for a service. Connections that wait in
//! them to be accepted belong to the new process. If that never becomes ready, the old process continues unchanged.
//!
//! `successor` starts the new process, `description` describes the sockets to it, and `inherited` reads them there.

mod description;
mod inherited;
mod successor;

pub(crate) use inherited::Inherited;
pub(crate) use successor::Successor;

use crate::quic::Lineage;
use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::net::{UnixDatagram, UnixListener},
    path::PathBuf,
};

/// All sockets of a process.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) listeners: Vec<ListenerSockets>,
    pub(crate) admin: Option<(SocketAddr, TcpListener)>,
    /// Unix socket of the admin endpoint.
    pub(crate) admin_unix: Option<(PathBuf, UnixListener)>,
}

/// Sockets of a listener.
pub(crate) struct ListenerSockets {
    /// Configured address, with port 0 if the kernel chooses the port.
    pub(crate) address: SocketAddr,
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) quic: Option<QuicSockets>,
}

/// HTTP/3 sockets of a listener.
pub(crate) struct QuicSockets {
    /// Lineage of processes that the sockets belong to; `None` begins a new one.
    pub(crate) lineage: Option<Lineage>,
    pub(crate) sockets: Vec<QuicSocket>,
}

/// An HTTP/3 socket.
pub(crate) struct QuicSocket {
    pub(crate) socket: UdpSocket,
    /// Forwards datagrams of connections of the predecessor.
    pub(crate) predecessor: Option<UnixDatagram>,
}
