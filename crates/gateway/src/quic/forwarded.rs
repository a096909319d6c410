//! Forwarding of datagrams to the previous process, which has their connections, while both use the same sockets.
//!
//! Each message begins with the source and destination: family, address, scope and port of both, in network byte
//! order.

use super::socket::Ends;
use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6},
    os::unix::net::UnixDatagram,
};

/// Length of an encoded address.
const ADDRESS: usize = 1 + 16 + 4 + 2;

/// Length of the header before a datagram.
const HEADER: usize = 2 * ADDRESS;

const IPV4: u8 = 4;
const IPV6: u8 = 6;

/// Maximum length of a message.
pub(super) const LARGEST: usize = HEADER + 65_535;

/// Forwards a datagram.
///
/// # Errors
/// Returns an error if the receiver has ended, or its buffer is full; the datagram is then lost, as it may be on a
/// network.
pub(super) fn send(to: &UnixDatagram, datagram: &[u8], ends: Ends) -> io::Result<()> {
    let mut message = Vec::with_capacity(HEADER + datagram.len());
    write(&mut message, ends.client);
    write(&mut message, ends.local);
    message.extend_from_slice(datagram);
    to.send(&message).map(drop)
}

/// Decodes a datagram with its source and destination; `None` if the message is invalid.
pub(super) fn read(message: &mut [u8]) -> Option<(&mut [u8], Ends)> {
    let (header, datagram) = message.split_at_mut_checked(HEADER)?;
    let (client, local) = header.split_at(ADDRESS);
    Some((datagram, Ends { client: address(client)?, local: address(local)? }))
}

fn write(message: &mut Vec<u8>, address: SocketAddr) {
    let (family, ip, scope) = match address {
        SocketAddr::V4(address) => (IPV4, address.ip().to_ipv6_mapped(), 0),
        SocketAddr::V6(address) => (IPV6, *address.ip(), address.scope_id()),
    };
    message.push(family);
    message.extend_from_slice(&ip.octets());
    message.extend_from_slice(&scope.to_be_bytes());
    message.extend_from_slice(&address.port().to_be_bytes());
}

fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let (family, rest) = bytes.split_first()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (scope, port) = rest.split_first_chunk::<4>()?;
    let (ip, port) = (Ipv6Addr::from(*ip), u16::from_be_bytes(port.try_into().ok()?));
    match *family {
        IPV4 => Some(SocketAddr::new(IpAddr::V4(ip.to_ipv4_mapped()?), port)),
        IPV6 => Some(SocketAddrV6::new(ip, port, 0, u32::from_be_bytes(*scope)).into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_arrives_with_its_ends_and_nothing_else_does() {
        let (here, there) = UnixDatagram::pair().unwrap();
        let cases = [
            ("192.0.2.1:4433", "198.51.100.2:443"),
            ("[2001:db8::1]:1", "[fe80::2%3]:65535"),
            ("[::ffff:192.0.2.1]:7", "[::1]:443"),
        ];
        for (client, local) in cases.map(|(client, local)| (client.parse().unwrap(), local.parse().unwrap()))
        {
            send(&here, b"datagram", Ends { client, local }).unwrap();
            let mut message = [0; LARGEST];
            let length = there.recv(&mut message).unwrap();
            let (datagram, ends) = read(&mut message[..length]).unwrap();
            assert_eq!((&*datagram, ends.client, ends.local), (&b"datagram"[..], client, local));
            assert!(read(&mut message[..HEADER - 1]).is_none());
            message[0] = 5;
            assert!(read(&mut message[..length]).is_none());
        }
    }
}
