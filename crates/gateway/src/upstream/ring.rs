//! Consistent hashing: which server a client stays with.
//!
//! Ketama (R. Jones, "libketama", 2007), with the hashes of nginx's `hash ... consistent`.

use super::address::ServerAddress;
use crc32fast::Hasher;
use std::{
    fmt::{self, Write},
    net::IpAddr,
};

/// Points of a server for each unit of its weight.
const POINTS: usize = 160;

/// Points on a ring, each of them a server's; a client's server is that of the next point.
pub(super) struct Ring(Box<[Point]>);

struct Point {
    hash: u32,
    server: u32,
}

impl Ring {
    /// Of servers at these addresses, with these weights.
    pub(super) fn new<'a>(servers: impl Iterator<Item = (&'a ServerAddress, usize)>) -> Self {
        let mut points = Vec::new();
        for (server, (address, weight)) in (0..).zip(servers) {
            let base = match address {
                ServerAddress::Ip(address) => hasher(format_args!("{}\0{}", address.ip(), address.port())),
                ServerAddress::Unix(_) => hasher(format_args!("{address}")),
            };
            let mut hash = 0_u32;
            for _ in 0..weight * POINTS {
                let mut hasher = base.clone();
                hasher.update(&hash.to_le_bytes());
                hash = hasher.finalize();
                points.push(Point { hash, server });
            }
        }
        points.sort_by_key(|point| point.hash);
        points.dedup_by_key(|point| point.hash);
        Self(points.into())
    }

    /// The first server from this point on that is accepted.
    pub(super) fn find(&self, hash: u32, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let first = self.0.partition_point(|point| point.hash < hash);
        let (before, behind) = self.0.split_at(first);
        behind.iter().chain(before).map(|point| point.server as usize).find(|server| accept(*server))
    }
}

/// The client's point on every ring.
pub(super) fn point_of(client: IpAddr) -> u32 {
    hasher(format_args!("{}", client.to_canonical())).finalize()
}

/// CRC-32 of a text, which need not be put together.
fn hasher(text: fmt::Arguments<'_>) -> Hasher {
    struct Text(Hasher);
    impl Write for Text {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0.update(part.as_bytes());
            Ok(())
        }
    }
    let mut hashed = Text(Hasher::new());
    // Hashing does not fail.
    let _ = hashed.write_fmt(text);
    hashed.0
}

#[cfg(test)]
mod tests {
    use super::{IpAddr, Ring, ServerAddress, point_of};

    fn ring(servers: &[(&str, usize)]) -> Ring {
        let at = |address: &str| ServerAddress::Ip(address.parse().expect("an address"));
        let servers: Vec<_> = servers.iter().map(|(address, weight)| (at(address), *weight)).collect();
        Ring::new(servers.iter().map(|(address, weight)| (address, *weight)))
    }

    fn clients() -> impl Iterator<Item = IpAddr> {
        (0..10_000_u32).map(|client| IpAddr::from(client.to_be_bytes()))
    }

    #[test]
    fn clients_are_shared_by_weight() {
        let ring = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 3)]);
        let second = clients().filter(|client| ring.find(point_of(*client), |_| true) == Some(1)).count();
        assert!((7_000..8_000).contains(&second), "{second}");
    }

    #[test]
    fn who_was_with_a_server_that_stays_stays() {
        let before = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 1), ("127.0.0.1:3", 1)]);
        let after = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 1)]);
        for client in clients() {
            let (was, is) = (before.find(point_of(client), |_| true), after.find(point_of(client), |_| true));
            assert!(was == is || was == Some(2), "{client}");
            assert_eq!(before.find(point_of(client), |server| server != 2), is, "as if it were not there");
        }
    }

    #[test]
    fn an_address_in_either_form_is_one_client() {
        let ring = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 1), ("[::1]:3", 1)]);
        let client: IpAddr = "192.0.2.1".parse().expect("an address");
        let mapped: IpAddr = "::ffff:192.0.2.1".parse().expect("an address");
        assert_eq!(ring.find(point_of(client), |_| true), ring.find(point_of(mapped), |_| true));
        assert_eq!(Ring::new(std::iter::empty()).find(point_of(client), |_| true), None);
    }
}
