//! Description of the sockets that a successor process inherits.

use super::{ListenerSockets, QuicSocket, QuicSockets, Sockets};
use crate::quic::Lineage;
use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
    path::PathBuf,
};

/// File descriptors of the sockets. Consecutive versions read each other's descriptions, so new fields are optional.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Description {
    listeners: Vec<Listener>,
    admin: Option<(SocketAddr, RawFd)>,
    admin_unix: Option<(PathBuf, RawFd)>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Listener {
    address: SocketAddr,
    tcp: Vec<RawFd>,
    quic: Option<Quic>,
}

#[derive(Debug, Deserialize, Serialize)]
struct Quic {
    lineage: Lineage,
    /// Socket, and the socket to which the predecessor's datagrams are forwarded.
    sockets: Vec<(RawFd, RawFd)>,
}

impl Description {
    /// Describes sockets that a successor process inherits under these descriptors.
    pub(super) fn of(sockets: &Sockets) -> Self {
        let quic = |quic: &QuicSockets| {
            let pair =
                |one: &QuicSocket| Some((one.socket.as_raw_fd(), one.predecessor.as_ref()?.as_raw_fd()));
            Some(Quic { lineage: quic.lineage?, sockets: quic.sockets.iter().filter_map(pair).collect() })
        };
        let listener = |listener: &ListenerSockets| Listener {
            address: listener.address,
            tcp: listener.tcp.iter().map(AsRawFd::as_raw_fd).collect(),
            quic: listener.quic.as_ref().and_then(quic),
        };
        Self {
            listeners: sockets.listeners.iter().map(listener).collect(),
            admin: sockets.admin.as_ref().map(|(address, socket)| (*address, socket.as_raw_fd())),
            admin_unix: sockets.admin_unix.as_ref().map(|(path, socket)| (path.clone(), socket.as_raw_fd())),
        }
    }

    /// Returns all descriptors in the description.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let of_listener = |listener: &Listener| {
            let quic =
                listener.quic.iter().flat_map(|quic| quic.sockets.iter().flat_map(|&(one, two)| [one, two]));
            listener.tcp.iter().copied().chain(quic).collect::<Vec<_>>()
        };
        let admin = self.admin.map(|(_, socket)| socket);
        let admin = admin.into_iter().chain(self.admin_unix.as_ref().map(|(_, socket)| *socket));
        self.listeners.iter().flat_map(of_listener).chain(admin).collect()
    }

    /// Takes ownership of the sockets.
    ///
    /// # Errors
    /// Fails if a descriptor is not open, or is listed twice.
    pub(super) fn adopt(self) -> io::Result<Sockets> {
        let mut seen: Vec<RawFd> = Vec::new();
        let mut take = |descriptor: RawFd| -> io::Result<OwnedFd> {
            if seen.contains(&descriptor) {
                return Err(io::Error::other(format!("descriptor {descriptor} is listed twice")));
            }
            seen.push(descriptor);
            adopt(descriptor)
        };
        let mut listeners = Vec::new();
        for Listener { address, tcp, quic } in self.listeners {
            let tcp = tcp.into_iter().map(|socket| Ok(take(socket)?.into())).collect::<io::Result<_>>()?;
            let quic = match quic {
                Some(Quic { lineage, sockets }) => {
                    let mut adopted = Vec::new();
                    for (socket, predecessor) in sockets {
                        let (socket, predecessor) = (take(socket)?.into(), Some(take(predecessor)?.into()));
                        adopted.push(QuicSocket { socket, predecessor });
                    }
                    Some(QuicSockets { lineage: Some(lineage), sockets: adopted })
                }
                None => None,
            };
            listeners.push(ListenerSockets { address, tcp, quic });
        }
        let admin = match self.admin {
            Some((address, socket)) => Some((address, take(socket)?.into())),
            None => None,
        };
        let admin_unix = match self.admin_unix {
            Some((path, socket)) => Some((path, take(socket)?.into())),
            None => None,
        };
        Ok(Sockets { listeners, admin, admin_unix })
    }
}

/// Takes ownership of a descriptor that the process was started with, and closes it on exec.
///
/// # Errors
/// Fails if it is not open, or is one of the three standard streams.
pub(super) fn adopt(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor <= 2 {
        return Err(io::Error::other(format!("descriptor {descriptor} is not a socket")));
    }
    // SAFETY: the borrow is used only to set the flag and not kept; a descriptor that is not open causes an error.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: the descriptor is open, was left to this process by the one that started it, and is adopted once.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
