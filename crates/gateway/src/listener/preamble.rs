//! What comes before TLS: a PROXY header where a load balancer announces clients, or a client that speaks plain HTTP.

use crate::tls::Transport;
use ppp::{HeaderResult, PartialResult, v1, v2};
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Who is connected to whom.
#[derive(Debug)]
pub(crate) struct Preamble {
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Why TLS does not begin.
#[derive(Debug)]
pub(crate) enum Refused {
    Closed(io::Error),
    ProxyHeader,
    PlainHttp,
    NotTls,
}

impl Refused {
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Closed(_) => "closed",
            Self::ProxyHeader => "proxy_header",
            Self::PlainHttp => "plain_http",
            Self::NotTls => "not_tls",
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(error) => write!(f, "the client left: {error}"),
            Self::ProxyHeader => f.write_str("the connection does not begin with a PROXY header"),
            Self::PlainHttp => f.write_str("the client spoke plain HTTP"),
            Self::NotTls => f.write_str("the first byte is not that of a TLS handshake"),
        }
    }
}

/// More than any header of either version with sane TLVs.
const LONGEST_PROXY_HEADER: usize = 4096;

/// Reads the PROXY header, if one announces the client.
pub(crate) async fn read(
    transport: &mut Transport,
    announced: bool,
    client: SocketAddr,
    local: SocketAddr,
) -> Result<Preamble, Refused> {
    if !announced {
        return Ok(Preamble { client, local });
    }
    more(transport).await?;
    proxy_header(transport, client, local).await
}

/// Reads what the client begins with. TLS begins with a handshake record (RFC 8446 section 5.1). Browsers that were
/// pointed at the wrong scheme are told so.
pub(crate) async fn expect_tls(transport: &mut Transport) -> Result<(), Refused> {
    const HANDSHAKE: u8 = 22;
    if transport.waiting().is_empty() {
        more(transport).await?;
    }
    match transport.waiting().first() {
        Some(&HANDSHAKE) => Ok(()),
        Some(byte) if byte.is_ascii_uppercase() => {
            answer_plain_http(transport).await.map_err(Refused::Closed)?;
            Err(Refused::PlainHttp)
        }
        _ => Err(Refused::NotTls),
    }
}

async fn more(transport: &mut Transport) -> Result<(), Refused> {
    match transport.read_more().await {
        Ok(true) => Ok(()),
        Ok(false) => Err(Refused::Closed(io::ErrorKind::UnexpectedEof.into())),
        Err(error) => Err(Refused::Closed(error)),
    }
}

async fn proxy_header(
    transport: &mut Transport,
    client: SocketAddr,
    local: SocketAddr,
) -> Result<Preamble, Refused> {
    loop {
        let header = HeaderResult::parse(transport.waiting());
        if header.is_complete() {
            let (length, announced) = match header {
                HeaderResult::V1(Ok(header)) => (header.header.len(), v1_addresses(&header)),
                HeaderResult::V2(Ok(header)) => (header.len(), v2_addresses(&header)),
                _ => return Err(Refused::ProxyHeader),
            };
            transport.consume(length);
            let (client, local) = announced.unwrap_or((client, local));
            return Ok(Preamble { client, local });
        }
        if !header.is_incomplete() || !may_become_header(transport.waiting()) {
            return Err(Refused::ProxyHeader);
        }
        more(transport).await?;
    }
}

/// The parser waits for fields that are missing, even behind the end of a v1 line.
fn may_become_header(bytes: &[u8]) -> bool {
    let text = bytes.starts_with(b"PROXY");
    bytes.len() <= LONGEST_PROXY_HEADER && !(text && bytes.windows(2).any(|pair| pair == b"\r\n"))
}

/// `None` for `UNKNOWN`: the real peer stands.
fn v1_addresses(header: &v1::Header<'_>) -> Option<(SocketAddr, SocketAddr)> {
    let pair = |source: IpAddr, source_port, destination: IpAddr, destination_port| {
        (SocketAddr::new(source, source_port), SocketAddr::new(destination, destination_port))
    };
    match header.addresses {
        v1::Addresses::Unknown => None,
        v1::Addresses::Tcp4(ip) => Some(pair(
            ip.source_address.into(),
            ip.source_port,
            ip.destination_address.into(),
            ip.destination_port,
        )),
        v1::Addresses::Tcp6(ip) => Some(pair(
            ip.source_address.into(),
            ip.source_port,
            ip.destination_address.into(),
            ip.destination_port,
        )),
    }
}

/// `None` for `LOCAL`, as of a balancer's own health check: the real peer stands.
fn v2_addresses(header: &v2::Header<'_>) -> Option<(SocketAddr, SocketAddr)> {
    match (header.command, header.addresses) {
        (v2::Command::Proxy, v2::Addresses::IPv4(ip)) => Some((
            SocketAddr::new(ip.source_address.into(), ip.source_port),
            SocketAddr::new(ip.destination_address.into(), ip.destination_port),
        )),
        (v2::Command::Proxy, v2::Addresses::IPv6(ip)) => Some((
            SocketAddr::new(ip.source_address.into(), ip.source_port),
            SocketAddr::new(ip.destination_address.into(), ip.destination_port),
        )),
        _ => None,
    }
}

async fn answer_plain_http(transport: &mut Transport) -> io::Result<()> {
    const BODY: &str = "This port speaks HTTPS. Use https:// in the address.\n";
    let answer = format!(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{BODY}",
        BODY.len()
    );
    transport.write_all(answer.as_bytes()).await?;
    transport.shutdown().await?;
    // Closing with unread bytes would reset the connection, and the client might never see the answer.
    let mut rest = [0; 4096];
    for _ in 0..16 {
        if transport.read(&mut rest).await? == 0 {
            break;
        }
    }
    Ok(())
}
