//! Client networks: the prefix of an address that counts as one client, as allocated to one subscriber, or to one host.

use std::net::{IpAddr, Ipv6Addr};

/// Returns the first 24 bits of an IPv4 address or the first 56 of an IPv6 address; the rest is zero.
pub(super) fn of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            [a, b, c, 0].into()
        }
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !0 << 72).into(),
    }
}

/// Returns the address of a host: an IPv4 address, or the first 64 bits of an IPv6 address, which one host has.
pub(super) fn of_host(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !0 << 64).into(),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_client() {
        let network = |text: &str| of(text.parse().expect("an address")).to_string();
        assert_eq!(network("192.0.2.77"), "192.0.2.0");
        assert_eq!(network("::ffff:192.0.2.77"), "192.0.2.0");
        assert_eq!(network("2001:db8:1:23ff:ffff::1"), "2001:db8:1:2300::");
    }
}
