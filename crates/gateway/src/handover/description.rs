//! What a process says of the sockets that the next one inherits.

use super::{ListenerSockets, QuicSocket, QuicSockets, Sockets};
use crate::quic::Lineage;
use rustix::io::FdFlags;
use serde::{Deserialize, Serialize};
use std::{
    io,
    net::SocketAddr,
    os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
};

/// The sockets by their numbers. Versions that follow each other read each other's: what is added is optional.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Description {
    listeners: Vec<Listener>,
    admin: Option<(SocketAddr, RawFd)>,
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
    /// A socket, and where datagrams of the process before go.
    sockets: Vec<(RawFd, RawFd)>,
}

impl Description {
    /// Of sockets that the next process inherits under these numbers.
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
        }
    }

    /// All numbers in it.
    pub(super) fn descriptors(&self) -> Vec<RawFd> {
        let of_listener = |listener: &Listener| {
            let quic =
                listener.quic.iter().flat_map(|quic| quic.sockets.iter().flat_map(|&(one, two)| [one, two]));
            listener.tcp.iter().copied().chain(quic).collect::<Vec<_>>()
        };
        self.listeners.iter().flat_map(of_listener).chain(self.admin.map(|(_, socket)| socket)).collect()
    }

    /// Takes the sockets over.
    ///
    /// # Errors
    /// If there is no such descriptor, or it was named before.
    pub(super) fn adopt(self) -> io::Result<Sockets> {
        let mut seen: Vec<RawFd> = Vec::new();
        let mut take = |descriptor: RawFd| -> io::Result<OwnedFd> {
            if seen.contains(&descriptor) {
                return Err(io::Error::other(format!("descriptor {descriptor} is named twice")));
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
        Ok(Sockets { listeners, admin })
    }
}

/// A descriptor that the process was started with; children of its own do not get it.
///
/// # Errors
/// If it is none, or one of the three standard streams.
pub(super) fn adopt(descriptor: RawFd) -> io::Result<OwnedFd> {
    if descriptor <= 2 {
        return Err(io::Error::other(format!("descriptor {descriptor} is no socket")));
    }
    // SAFETY: it is only asked about, and not kept; if it is not open, that is an error.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    rustix::io::fcntl_setfd(borrowed, FdFlags::CLOEXEC)?;
    // SAFETY: it is open, whoever started this process has left it to it, and each is adopted once.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}
