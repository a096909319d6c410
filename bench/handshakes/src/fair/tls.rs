//! Blocking TLS connections of clients, from an address of their own.

use std::{
    io::{self, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    os::fd::AsRawFd,
    sync::OnceLock,
    time::Duration,
};

use boring::error::ErrorStack;
use boring::ssl::{SslConnector, SslMethod, SslStream, SslVerifyMode};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, setsockopt, socket, sockopt::RcvBuf,
};

/// Time after which a blocked call returns, so that the caller can check whether it is to stop.
pub(super) const TICK: Duration = Duration::from_millis(200);

/// Size of the kernel's buffers on the ends of connections that would be on other machines.
pub(super) const KERNEL_BUFFER: usize = 64 * 1024;

/// Connects from a loopback address.
pub(super) fn tcp(source: Ipv4Addr, target: SocketAddr) -> io::Result<TcpStream> {
    let SocketAddr::V4(target) = target else { return Err(io::ErrorKind::Unsupported.into()) };
    let end = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)?;
    setsockopt(&end, RcvBuf, &KERNEL_BUFFER)?;
    let [a, b, c, d] = source.octets();
    bind(end.as_raw_fd(), &SockaddrIn::new(a, b, c, d, 0))?;
    connect(end.as_raw_fd(), &SockaddrIn::from(target))?;
    let tcp = TcpStream::from(end);
    tcp.set_nodelay(true)?;
    tcp.set_read_timeout(Some(TICK))?;
    tcp.set_write_timeout(Some(TICK))?;
    Ok(tcp)
}

/// Completes a handshake that offers one application protocol.
pub(super) fn tls(tcp: TcpStream, protocol: &str) -> io::Result<SslStream<TcpStream>> {
    tcp.set_read_timeout(Some(Duration::from_secs(10)))?;
    let mut configuration = connector()?.configure().map_err(io::Error::other)?;
    let mut offered = vec![u8::try_from(protocol.len()).map_err(io::Error::other)?];
    offered.extend(protocol.bytes());
    configuration.set_alpn_protos(&offered).map_err(io::Error::other)?;
    let stream = configuration
        .verify_hostname(false)
        .connect("localhost", tcp)
        .map_err(|error| io::Error::other(error.to_string()))?;
    stream.get_ref().set_read_timeout(Some(TICK))?;
    Ok(stream)
}

/// Returns the connector of all clients. To make one reads the certificates of the system.
fn connector() -> io::Result<&'static SslConnector> {
    static CONNECTOR: OnceLock<Result<SslConnector, ErrorStack>> = OnceLock::new();
    let made = CONNECTOR.get_or_init(|| {
        let mut builder = SslConnector::builder(SslMethod::tls())?;
        builder.set_verify(SslVerifyMode::NONE);
        Ok(builder.build())
    });
    made.as_ref().map_err(|error| io::Error::other(error.to_string()))
}

/// Sends all bytes, unless `stopped` becomes true first.
pub(super) fn send(stream: &mut impl Write, mut bytes: &[u8], stopped: impl Fn() -> bool) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => bytes = &bytes[count..],
            Err(error) if is_tick(&error) && !stopped() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads available data; 0 after a [`TICK`] without any.
pub(super) fn receive(stream: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    match stream.read(room) {
        Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(error) if is_tick(&error) => Ok(0),
        outcome => outcome,
    }
}

fn is_tick(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}
