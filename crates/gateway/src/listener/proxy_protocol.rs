//! The PROXY protocol: the header in which a load balancer announces the client.

use crate::tls::Transport;
use ppp::{HeaderResult, PartialResult, v1, v2};
use quadrille_config::model::TrustedProxies;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};

/// Who is connected to whom.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Why there is no header.
#[derive(Debug)]
pub(crate) enum ProxyHeaderError {
    Closed(io::Error),
    Malformed,
    /// The peer is none of those that may announce clients.
    Untrusted,
}

impl ProxyHeaderError {
    /// The reason in metrics.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Closed(_) => "closed",
            Self::Malformed | Self::Untrusted => "proxy_header",
        }
    }
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed(error) => write!(f, "the client left: {error}"),
            Self::Malformed => f.write_str("the connection does not begin with a PROXY header"),
            Self::Untrusted => f.write_str("the peer is none of the trusted proxies"),
        }
    }
}

/// More than any header of either version with sane TLVs.
const LONGEST_PROXY_HEADER: usize = 4096;

/// Reads the header, and takes it off the stream. Without addresses in it, `client` and `local` stand.
pub(crate) async fn read(
    transport: &mut Transport,
    client: SocketAddr,
    local: SocketAddr,
    trusted: &TrustedProxies,
) -> Result<Ends, ProxyHeaderError> {
    if !trusted.may_announce(client.ip()) {
        return Err(ProxyHeaderError::Untrusted);
    }
    loop {
        transport.need_more().await.map_err(ProxyHeaderError::Closed)?;
        if is_part_of_line(transport.waiting()) {
            continue;
        }
        let header = HeaderResult::parse(transport.waiting());
        if header.is_complete() {
            let (length, announced) = match header {
                HeaderResult::V1(Ok(header)) => (header.header.len(), v1_addresses(&header)),
                HeaderResult::V2(Ok(header)) => (header.len(), v2_addresses(&header)),
                _ => return Err(ProxyHeaderError::Malformed),
            };
            transport.consume(length);
            let (client, local) = announced.unwrap_or((client, local));
            return Ok(Ends { client, local });
        }
        if !header.is_incomplete() || !may_become_header(transport.waiting()) {
            return Err(ProxyHeaderError::Malformed);
        }
    }
}

/// The parser takes a v1 line that ends behind a space for a wrong one: it sees whole lines only.
fn is_part_of_line(bytes: &[u8]) -> bool {
    const LONGEST_LINE: usize = 107;
    bytes.starts_with(b"PROXY ")
        && bytes.len() < LONGEST_LINE
        && !bytes.windows(2).any(|pair| pair == b"\r\n")
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

#[cfg(test)]
mod tests {
    use super::is_part_of_line;

    #[test]
    fn a_line_is_parsed_once_it_is_whole() {
        let line = b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n";
        assert!((6..line.len()).all(|length| is_part_of_line(&line[..length])));
        assert!(!is_part_of_line(line) && !is_part_of_line(b"\r\n\r\n\0"));
        assert!(!is_part_of_line(&[b"PROXY ", &[b'1'; 101][..]].concat()), "too long for one");
    }
}
