//! PROXY protocol header, which announces the client to an endpoint.

use ppp::{v1, v2};
use quadrille_config::model::ProxyProtocolOut;
use std::net::{IpAddr, SocketAddr};

/// Returns the header for a connection from `client` to `local`; empty if the protocol is off.
pub(crate) fn proxy_header(form: ProxyProtocolOut, client: SocketAddr, local: SocketAddr) -> Vec<u8> {
    let (client, local) = same_family(client, local);
    match form {
        ProxyProtocolOut::Off => Vec::new(),
        ProxyProtocolOut::V1 => v1::Addresses::from((client, local)).to_string().into_bytes(),
        ProxyProtocolOut::V2 => {
            let header = v2::Builder::with_addresses(
                v2::Version::Two | v2::Command::Proxy,
                v2::Protocol::Stream,
                (client, local),
            );
            header.build().unwrap_or_default()
        }
    }
}

/// Returns the header for a connection of the gateway itself, such as a health check.
pub(crate) fn local_header(form: ProxyProtocolOut) -> Vec<u8> {
    match form {
        ProxyProtocolOut::Off => Vec::new(),
        ProxyProtocolOut::V1 => b"PROXY UNKNOWN\r\n".to_vec(),
        ProxyProtocolOut::V2 => {
            let local = v2::Version::Two | v2::Command::Local;
            v2::Builder::new(local, v2::AddressFamily::Unspecified | v2::Protocol::Unspecified)
                .build()
                .unwrap_or_default()
        }
    }
}

/// Converts both addresses to one family, as a dual-stack socket reports IPv4 clients as mapped addresses.
fn same_family(client: SocketAddr, local: SocketAddr) -> (SocketAddr, SocketAddr) {
    let canonical = |address: SocketAddr| SocketAddr::new(address.ip().to_canonical(), address.port());
    let (client, local) = (canonical(client), canonical(local));
    match (client.ip(), local.ip()) {
        (IpAddr::V4(client_ip), IpAddr::V6(_)) => {
            (SocketAddr::new(client_ip.to_ipv6_mapped().into(), client.port()), local)
        }
        (IpAddr::V6(_), IpAddr::V4(local_ip)) => {
            (client, SocketAddr::new(local_ip.to_ipv6_mapped().into(), local.port()))
        }
        _ => (client, local),
    }
}
