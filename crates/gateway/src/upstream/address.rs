//! Addresses of endpoints, and connecting to them.

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
    /// Path of a Unix socket; a name that begins with `@` is abstract (unix(7)).
    Unix(Arc<Path>),
}

impl ServerAddress {
    /// Opens a connection without Nagle's algorithm.
    ///
    /// A Unix stream socket has the same calls as a TCP socket and is represented by the same type: TLS and HTTP need
    /// no distinction, and requests do not pay for one.
    ///
    /// The source address is one of the `sources`, if there are any; a Unix socket has none.
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
        let problem = format!("no source address of the address family of {address}");
        return Err(io::Error::new(io::ErrorKind::AddrNotAvailable, problem));
    };
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // The kernel chooses the port once it knows the destination, so that the port can be used for other destinations
    // too.
    source_port::choose_late(&socket)?;
    socket.bind(SocketAddr::new(*source, 0))?;
    socket.connect(address).await
}

/// Returns the path in the kernel's form: an abstract name begins with a zero byte.
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

/// The written form, also in logs.
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
