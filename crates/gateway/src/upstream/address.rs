//! Where a server is, and how a connection to it begins.

use std::{
    fmt, io,
    net::SocketAddr,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::Path,
    sync::Arc,
};
use tokio::net::{TcpStream, UnixStream};

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
    pub(super) async fn connect(&self) -> io::Result<TcpStream> {
        match self {
            Self::Ip(address) => {
                let tcp = TcpStream::connect(address).await?;
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
