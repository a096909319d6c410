//! Where a server is, and how a connection to it begins.

use super::source_port;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    sync::Arc,
};
use tokio::net::{TcpSocket, TcpStream, UnixStream};

/// An IP address with its port, or a Unix socket of this machine.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum ServerAddress {
    Ip(SocketAddr),
    /// By its path; a name that begins with `@` is abstract (unix(7)).
    Unix(Arc<Path>),
}

impl ServerAddress {
    /// A connection, whose small writes leave at once.
    ///
    /// A stream socket of the other family has the same calls, so it goes by the same type: neither TLS nor HTTP need to
    /// know of it, and requests do not pay for the difference.
    ///
    /// It leaves from one of the `sources`, if there are any; a Unix socket has none.
    pub(super) async fn connect(&self, sources: &[IpAddr]) -> io::Result<TcpStream> {
        match self {
            Self::Ip(address) => {
                let tcp = connect_from(sources, *address).await?;
                tcp.set_nodelay(true)?;
                Ok(tcp)
            }
            Self::Unix(path) => {
                let unix = UnixStream::connect(Path::new(&socket_name(path))).await?.into_std()?;
                TcpStream::from_std(OwnedFd::from(unix).into())
            }
        }
    }
}

async fn connect_from(sources: &[IpAddr], address: SocketAddr) -> io::Result<TcpStream> {
    if sources.is_empty() {
        return TcpStream::connect(address).await;
    }
    let Some(source) = sources.iter().find(|source| source.is_ipv4() == address.is_ipv4()) else {
        let problem = format!("no address to leave from is of the family of {address}");
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, problem));
    };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The kernel chooses the port when it knows the server: so the port can be used towards others too.
    source_port::choose_late(&socket)?;
    socket.bind(SocketAddr::new(*source, 0))?;
    socket.connect(address).await
}

/// The path as the kernel takes it: an abstract name begins with a zero byte there.
fn socket_name(path: &Path) -> std::ffi::OsString {
    let bytes = path.as_os_str().as_bytes();
    match bytes.strip_prefix(b"@") {
        Some(name) => std::ffi::OsStr::from_bytes(&[b"\0", name].concat()).to_owned(),
        None => path.as_os_str().to_owned(),
    }
}

impl From<SocketAddr> for ServerAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Ip(address)
    }
}

/// As it is written, also in logs.
impl fmt::Debug for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}
