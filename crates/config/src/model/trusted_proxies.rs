//! Trusted proxies.

use super::Problem;
use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

/// The peers that may identify their clients, in `X-Forwarded-For` and similar headers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TrustedProxies {
    /// Peers in these networks. Headers from others are replaced.
    In(Vec<Network>),
    /// No peer, but the peer's address is appended to any `X-Forwarded-For`, as in Envoy: servers count its entries
    /// from the end.
    AppendedTo,
}

/// A network: the addresses with a common prefix (CIDR, RFC 4632).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The first address.
    address: IpAddr,
    /// The prefix length.
    prefix: u32,
}

impl TrustedProxies {
    /// Returns whether a peer is trusted.
    pub fn contains(&self, peer: IpAddr) -> bool {
        match self {
            Self::In(networks) => networks.iter().any(|network| network.contains(peer)),
            Self::AppendedTo => false,
        }
    }

    /// Returns whether a peer may announce clients by the PROXY protocol: peers in the networks, or any peer if the
    /// list is empty.
    pub fn may_announce(&self, peer: IpAddr) -> bool {
        match self {
            Self::In(networks) => networks.is_empty() || self.contains(peer),
            Self::AppendedTo => true,
        }
    }
}

/// No peer is trusted.
impl Default for TrustedProxies {
    fn default() -> Self {
        Self::In(Vec::new())
    }
}

impl Network {
    /// Returns the network of an address with this prefix length; `None` if an address has fewer bits.
    pub fn around(address: IpAddr, prefix: u32) -> Option<Self> {
        let address = match address {
            IpAddr::V4(address) if prefix <= 32 => begin_v4(address, prefix).into(),
            IpAddr::V6(address) if prefix <= 128 => begin_v6(address, prefix).into(),
            _ => return None,
        };
        Some(Self { address, prefix })
    }

    /// Returns the prefix length; a longer prefix is more specific.
    pub fn prefix(&self) -> u32 {
        self.prefix
    }

    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address (RFC 4291 section 2.5.5.2) counts
    /// as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => first == begin_v4(address, self.prefix),
            (IpAddr::V6(first), IpAddr::V6(address)) => first == begin_v6(address, self.prefix),
            _ => false,
        }
    }
}

fn begin_v4(address: Ipv4Addr, prefix: u32) -> Ipv4Addr {
    (address.to_bits() & !u32::MAX.checked_shr(prefix).unwrap_or(0)).into()
}

fn begin_v6(address: Ipv6Addr, prefix: u32) -> Ipv6Addr {
    (address.to_bits() & !u128::MAX.checked_shr(prefix).unwrap_or(0)).into()
}

impl FromStr for Network {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let form = || {
            let remedy = "write an IP address, or one with a prefix length: 10.0.0.0/8, 2001:db8::/32";
            Problem::new(format!("`{text}` is not a network"), remedy)
        };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| form())?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let digits = |prefix: &str| prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = match prefix {
            Some(prefix) if digits(prefix) => prefix.parse().map_err(|_| form())?,
            Some(_) => return Err(form()),
            None => bits,
        };
        let first: IpAddr = match address {
            _ if prefix > bits => return Err(form()),
            IpAddr::V4(address) => begin_v4(address, prefix).into(),
            IpAddr::V6(address) => begin_v6(address, prefix).into(),
        };
        if first != address {
            let problem = format!("`{text}` has bits set beyond its prefix");
            return Err(Problem::new(problem, format!("write {first}/{prefix}, or a longer prefix")));
        }
        if address.to_canonical() != address {
            let remedy = "write it as an IPv4 network, which covers both forms";
            return Err(Problem::new(format!("`{text}` is an IPv4-mapped IPv6 network"), remedy));
        }
        Ok(Self { address, prefix })
    }
}

/// Writes the network in the format that is read.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_what_its_prefix_says() {
        for (network, inside, outside) in [
            ("127.0.1.0/24", "127.0.1.255", "127.0.2.0"),
            ("127.0.1.0/24", "::ffff:127.0.1.9", "::127.0.1.9"),
            ("10.1.2.3", "10.1.2.3", "10.1.2.2"),
            ("0.0.0.0/0", "255.255.255.255", "::"),
            ("128.0.0.0/1", "255.0.0.0", "127.255.255.255"),
            ("2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"),
            ("::/0", "ffff::", "1.2.3.4"),
            ("::1", "::1", "::2"),
        ] {
            let read: Network = network.parse().unwrap();
            assert!(read.contains(inside.parse().unwrap()), "{network} {inside}");
            assert!(!read.contains(outside.parse().unwrap()), "{network} {outside}");
            assert_eq!(read.to_string().parse::<Network>().unwrap(), read);
        }
        let around = |address: &str, prefix| Network::around(address.parse().unwrap(), prefix);
        assert_eq!(around("10.1.2.3", 8), Some("10.0.0.0/8".parse().unwrap()));
        assert_eq!((around("10.1.2.3", 33), around("::1", 129)), (None, None));
        for garbage in
            ["", "/", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "10.0.0.1/8", "::/129", "a/8"]
        {
            assert!(garbage.parse::<Network>().is_err(), "{garbage}");
        }
        assert!("::ffff:10.0.0.0/104".parse::<Network>().is_err());
    }
}
