//! PROXY protocol: the header in which a load balancer announces the client.

use crate::tls::Transport;
use ppp::{HeaderResult, PartialResult, v1, v2};
use quadrille_config::model::TrustedProxies;
use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
};

/// Source and destination of a connection.
#[derive(Debug)]
pub(crate) struct Ends {
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Reason for a missing header.
#[derive(Debug)]
pub(crate) enum ProxyHeaderError {
    Closed(io::Error),
    Malformed,
    /// The peer is not a trusted proxy.
    Untrusted,
}

impl ProxyHeaderError {
    /// Returns the reason's label in metrics.
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
            Self::Closed(error) => write!(f, "the client disconnected: {error}"),
            Self::Malformed => f.write_str("the connection does not begin with a PROXY header"),
            Self::Untrusted => f.write_str("the peer is not a trusted proxy"),
        }
    }
}

/// Maximum length of a header: more than any header of either version with sane TLVs.
const LONGEST_PROXY_HEADER: usize = 4096;

/// Reads and consumes the header. If it contains no addresses, `client` and `local` apply.
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

/// Returns whether a v1 line is incomplete. The parser rejects one that ends after a space, as it expects whole
/// lines.
fn is_part_of_line(bytes: &[u8]) -> bool {
    const LONGEST_LINE: usize = 107;
    bytes.starts_with(b"PROXY ")
        && bytes.len() < LONGEST_LINE
        && !bytes.windows(2).any(|pair| pair == b"\r\n")
}

/// Returns whether more bytes can complete the header. The parser waits for missing fields even after the end of a v1
/// line.
fn may_become_header(bytes: &[u8]) -> bool {
    let text = bytes.starts_with(b"PROXY");
    bytes.len() <= LONGEST_PROXY_HEADER && !(text && bytes.windows(2).any(|pair| pair == b"\r\n"))
}

/// Returns the announced addresses; `None` for `UNKNOWN`, where the connection's addresses apply.
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

/// Returns the announced addresses; `None` for `LOCAL`, as in a load balancer's health check, where the connection's
/// addresses apply.
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
        assert!(!is_part_of_line(&[b"PROXY ", &[b'1'; 101][..]].concat()), "too long for a line");
    }
}
