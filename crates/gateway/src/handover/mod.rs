//! Listening sockets from one process to the next, so that a restart refuses nobody.
//!
//! ```text
//!  old process                                    new process
//!  SIGUSR2 ── starts ───────────────────────────> reads its configuration
//!     │ ── what each socket is for, in JSON ────> takes the sockets that it names, opens others
//!     │ <──────────────────────────── "ready" ─── serves
//!  closes its copies, drains                         │
//!     │ <── datagrams of its QUIC connections ────── │   (both read UDP from the same sockets)
//! ```
//!
//! The sockets themselves are inherited, as are those that systemd opens for a service. What waits in them for being
//! accepted is the next process's, and if that never becomes ready, nothing has happened.

mod description;
mod inherited;
mod successor;

pub(crate) use inherited::Inherited;
pub(crate) use successor::Successor;

use crate::quic::Lineage;
use std::{
    net::{SocketAddr, TcpListener, UdpSocket},
    os::unix::net::UnixDatagram,
};

/// Everything that a process listens on.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) listeners: Vec<ListenerSockets>,
    pub(crate) admin: Option<(SocketAddr, TcpListener)>,
}

/// What a listener listens on.
pub(crate) struct ListenerSockets {
    /// As it was asked for, with 0 for a port that the kernel has chosen.
    pub(crate) address: SocketAddr,
    pub(crate) tcp: Vec<TcpListener>,
    pub(crate) quic: Option<QuicSockets>,
}

/// What a listener receives HTTP/3 on.
pub(crate) struct QuicSockets {
    /// Of the process that they are for; `None` begins a new one.
    pub(crate) lineage: Option<Lineage>,
    pub(crate) sockets: Vec<QuicSocket>,
}

/// One of them.
pub(crate) struct QuicSocket {
    pub(crate) socket: UdpSocket,
    /// For datagrams of connections that a process before has.
    pub(crate) predecessor: Option<UnixDatagram>,
}
