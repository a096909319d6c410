//! Messages to a syslog server (RFC 5424), over UDP (RFC 5426) or a Unix socket.

use quadrille_config::model::{Syslog, SyslogServer};
use std::{
    io::{self, Write},
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    os::unix::net::UnixDatagram,
    path::PathBuf,
    time::Instant,
};

/// Severity "informational".
const INFORMATIONAL: u8 = 6;

/// Longest time without an attempt to connect to a Unix socket again.
const PAUSE: std::time::Duration = std::time::Duration::from_secs(1);

/// Sends each line as a message. Messages that the server does not accept at once are lost.
pub(super) struct SyslogWriter {
    settings: Syslog,
    host: String,
    transport: Transport,
}

enum Transport {
    Udp(UdpSocket, SocketAddr),
    /// A socket that is connected again after the server has restarted.
    Unix {
        path: PathBuf,
        socket: Option<UnixDatagram>,
        tried: Option<Instant>,
    },
}

impl SyslogWriter {
    /// Opens a socket. The server need not exist.
    ///
    /// # Errors
    /// If the socket cannot be created.
    pub(super) fn open(settings: &Syslog) -> io::Result<Self> {
        let transport = match &settings.server {
            SyslogServer::Udp(address) => {
                let any = match address {
                    SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
                    SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
                };
                Transport::Udp(UdpSocket::bind(any)?, *address)
            }
            SyslogServer::Unix(path) => Transport::Unix { path: path.clone(), socket: None, tried: None },
        };
        Ok(Self { settings: settings.clone(), host: host(), transport })
    }

    fn message(&self, line: &[u8]) -> Vec<u8> {
        let priority = self.settings.facility * 8 + INFORMATIONAL;
        let time = quadrille_unix_time::rfc3339(quadrille_unix_time::unix_now());
        let (host, tag, process) = (&self.host, &self.settings.tag, std::process::id());
        let mut message = format!("<{priority}>1 {time} {host} {tag} {process} - - ").into_bytes();
        message.extend_from_slice(line.trim_ascii_end());
        message
    }
}

impl Transport {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        match self {
            Self::Udp(socket, address) => socket.send_to(message, *address).map(drop),
            Self::Unix { path, socket, tried } => {
                if socket.is_none() && tried.is_none_or(|tried| tried.elapsed() >= PAUSE) {
                    *tried = Some(Instant::now());
                    let new = UnixDatagram::unbound()?;
                    new.set_nonblocking(true)?;
                    new.connect(path)?;
                    *socket = Some(new);
                }
                let Some(connected) = socket else { return Err(io::ErrorKind::NotConnected.into()) };
                let sent = connected.send(message).map(drop);
                if sent.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::WouldBlock) {
                    *socket = None;
                }
                sent
            }
        }
    }
}

impl Write for SyslogWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let message = self.message(line);
            // The gateway does not wait for a syslog server, so a message that it does not accept is lost.
            let _ = self.transport.send(&message);
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the machine's name, or `-`.
fn host() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let is_valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic());
    if is_valid { name } else { "-".to_owned() }
}
