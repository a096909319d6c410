//! Sockets that a process was started with, from its predecessor or from systemd.

use super::{
    ListenerSockets, QuicSocket, QuicSockets, Sockets,
    description::{self, Description},
    successor::{MOST_DESCRIPTION, PREDECESSOR, READY},
};
use rustix::net::{AddressFamily, SocketType, sockopt};
use std::{
    fs,
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, UdpSocket},
    os::{
        fd::OwnedFd,
        unix::{
            net::{UnixDatagram, UnixListener, UnixStream},
            process::parent_id,
        },
    },
    path::Path,
    time::Duration,
};

/// Time limit for the predecessor's description of the sockets.
const PATIENCE: Duration = Duration::from_secs(10);

/// Inherited sockets, each until it is taken.
#[derive(Default)]
pub(crate) struct Inherited {
    sockets: Sockets,
    /// Notified when this process is ready.
    predecessor: Option<UnixStream>,
}

impl Inherited {
    /// Returns the sockets of this process. Called once, before the process opens other files.
    ///
    /// # Errors
    /// Fails if the inherited sockets do not match their description.
    pub(crate) fn of_process() -> io::Result<Self> {
        match predecessor() {
            Some(stream) => Self::of_predecessor(description::adopt(stream)?.into()),
            None => Self::of_systemd(),
        }
    }

    fn of_predecessor(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut line = String::new();
        BufReader::new((&stream).take(MOST_DESCRIPTION)).read_line(&mut line)?;
        let description: Description = serde_json::from_str(&line)?;
        Ok(Self { sockets: description.adopt()?, predecessor: Some(stream) })
    }

    /// Takes the sockets of socket activation (sd_listen_fds(3)).
    fn of_systemd() -> io::Result<Self> {
        let mut sockets = Sockets::default();
        for descriptor in sd_notify::listen_fds()? {
            sockets.add(description::adopt(descriptor)?)?;
        }
        Ok(Self { sockets, predecessor: None })
    }

    /// Takes the TCP sockets of a listener with this address: `count`, or none if none were inherited.
    ///
    /// # Errors
    /// Fails if file descriptors are exhausted.
    pub(crate) fn take_tcp(&mut self, address: SocketAddr, count: usize) -> io::Result<Vec<TcpListener>> {
        let found =
            self.sockets.listeners.iter_mut().find(|known| known.address == address && !known.tcp.is_empty());
        let mut sockets = found.map(|known| std::mem::take(&mut known.tcp)).unwrap_or_default();
        for index in 0..if sockets.is_empty() { 0 } else { count.saturating_sub(sockets.len()) } {
            sockets.push(sockets[index].try_clone()?);
        }
        sockets.iter().try_for_each(|socket| socket.set_nonblocking(true))?;
        Ok(sockets)
    }

    /// Takes the HTTP/3 sockets of a listener with this address.
    ///
    /// # Errors
    /// Fails if file descriptors are exhausted.
    pub(crate) fn take_quic(&mut self, address: SocketAddr, count: usize) -> io::Result<Option<QuicSockets>> {
        let found =
            self.sockets.listeners.iter_mut().find(|known| known.address == address && known.quic.is_some());
        let Some(mut quic) = found.and_then(|known| known.quic.take()) else { return Ok(None) };
        for index in 0..count.saturating_sub(quic.sockets.len()) {
            let QuicSocket { socket, predecessor } = &quic.sockets[index];
            let predecessor = predecessor.as_ref().map(UnixDatagram::try_clone).transpose()?;
            quic.sockets.push(QuicSocket { socket: socket.try_clone()?, predecessor });
        }
        quic.sockets.iter().try_for_each(|one| one.socket.set_nonblocking(true))?;
        Ok(Some(quic))
    }

    /// Takes the socket of the admin address.
    pub(crate) fn take_admin(&mut self, address: SocketAddr) -> io::Result<Option<TcpListener>> {
        let known = self.sockets.admin.take_if(|(known, _)| *known == address);
        let socket = match known {
            Some((_, socket)) => Some(socket),
            None => self.take_tcp(address, 1)?.pop(),
        };
        socket.as_ref().map_or(Ok(()), |socket| socket.set_nonblocking(true))?;
        Ok(socket)
    }

    /// Takes the Unix socket of the admin endpoint.
    pub(crate) fn take_admin_unix(&mut self, path: &Path) -> Option<UnixListener> {
        self.sockets.admin_unix.take_if(|(known, _)| known == path).map(|(_, socket)| socket)
    }

    /// Notifies the predecessor and systemd of readiness, and closes the sockets that were not taken. Returns their
    /// addresses.
    pub(crate) fn ready(&mut self) -> Vec<SocketAddr> {
        if let Some(mut stream) = self.predecessor.take()
            && let Err(error) = stream.write_all(READY)
        {
            tracing::warn!(%error, "cannot notify the previous process of readiness");
        }
        if let Err(error) = sd_notify::notify(&[sd_notify::NotifyState::Ready]) {
            tracing::warn!(%error, "cannot notify systemd of readiness");
        }
        let sockets = std::mem::take(&mut self.sockets);
        if let Some((path, _)) = sockets.admin_unix {
            // The configuration has another path; the predecessor, which is replaced, does not remove this one.
            let _ = fs::remove_file(path);
        }
        let left = sockets.listeners;
        let is_left = |known: &ListenerSockets| !known.tcp.is_empty() || known.quic.is_some();
        left.iter().filter(|known| is_left(known)).map(|known| known.address).collect()
    }
}

impl Sockets {
    /// Adds a socket that is known only by its local address.
    fn add(&mut self, socket: OwnedFd) -> io::Result<()> {
        let is_internet =
            matches!(sockopt::socket_domain(&socket)?, AddressFamily::INET | AddressFamily::INET6);
        match sockopt::socket_type(&socket)? {
            SocketType::STREAM if is_internet => {
                let socket = TcpListener::from(socket);
                self.listener(socket.local_addr()?).tcp.push(socket);
            }
            SocketType::DGRAM if is_internet => {
                let socket = UdpSocket::from(socket);
                let listener = self.listener(socket.local_addr()?);
                let quic =
                    listener.quic.get_or_insert_with(|| QuicSockets { lineage: None, sockets: Vec::new() });
                quic.sockets.push(QuicSocket { socket, predecessor: None });
            }
            _ => return Err(io::Error::other("a socket of the systemd unit is neither TCP nor UDP")),
        }
        Ok(())
    }

    fn listener(&mut self, address: SocketAddr) -> &mut ListenerSockets {
        let known = self.listeners.iter().position(|known| known.address == address);
        let index = known.unwrap_or_else(|| {
            self.listeners.push(ListenerSockets { address, tcp: Vec::new(), quic: None });
            self.listeners.len() - 1
        });
        &mut self.listeners[index]
    }
}

/// Returns the descriptor of the connection to the predecessor, if that process has started this one.
fn predecessor() -> Option<i32> {
    let said = std::env::var(PREDECESSOR).ok()?;
    let (descriptor, process) = said.split_once(' ')?;
    let is_parent = process.parse::<u32>().is_ok_and(|process| process == parent_id());
    is_parent.then(|| descriptor.parse().ok()).flatten()
}
