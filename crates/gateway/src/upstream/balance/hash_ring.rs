//! Consistent hashing of clients to endpoints.
//!
//! Ketama (R. Jones, "libketama", 2007), with the hashes of nginx's `hash ... consistent`.

use crate::upstream::address::ServerAddress;
use crc32fast::Hasher;
use std::{
    fmt::{self, Write},
    net::IpAddr,
};

/// Number of points of an endpoint per unit of its weight.
const POINTS: usize = 160;

/// Hash ring with the points of endpoints; a client is assigned to the endpoint of the next point.
pub(crate) struct Ring(Box<[Point]>);

struct Point {
    hash: u32,
    server: u32,
}

impl Ring {
    /// Creates a ring of endpoints with these addresses and weights.
    pub(crate) fn new<'a>(servers: impl Iterator<Item = (&'a ServerAddress, usize)>) -> Self {
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

    /// Returns the first accepted endpoint from this point on.
    pub(crate) fn find(&self, hash: u32, accept: impl Fn(usize) -> bool) -> Option<usize> {
        let first = self.0.partition_point(|point| point.hash < hash);
        let (before, behind) = self.0.split_at(first);
        behind.iter().chain(before).map(|point| point.server as usize).find(|server| accept(*server))
    }
}

/// Returns the client's point on every ring.
pub(crate) fn point_of(client: IpAddr) -> u32 {
    hasher(format_args!("{}", client.to_canonical())).finalize()
}

/// Returns the CRC-32 state of a text, without allocating it.
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
    fn clients_of_remaining_endpoints_keep_them() {
        let before = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 1), ("127.0.0.1:3", 1)]);
        let after = ring(&[("127.0.0.1:1", 1), ("127.0.0.1:2", 1)]);
        for client in clients() {
            let (was, is) = (before.find(point_of(client), |_| true), after.find(point_of(client), |_| true));
            assert!(was == is || was == Some(2), "{client}");
            assert_eq!(before.find(point_of(client), |server| server != 2), is, "as if it were removed");
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
