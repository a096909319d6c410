//! Scenario: the load and configuration that all servers share.

use std::{fmt, net::SocketAddr, time::Duration};

use clap::ValueEnum;
use quadrille_profile::load::{Load, Offer, Pace, TlsVersion};

/// Type of the certificate's key, which determines the private-key operation of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyKind {
    /// ECDSA on P-256.
    #[value(name = "p256")]
    P256,
    /// RSA with a modulus of 2048 bits.
    #[value(name = "rsa2048")]
    Rsa2048,
    /// RSA with a modulus of 4096 bits.
    #[value(name = "rsa4096")]
    Rsa4096,
    /// ML-DSA-44, in TLS 1.3.
    #[value(name = "mldsa44")]
    MlDsa44,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P256 => "P-256",
            Self::Rsa2048 => "RSA-2048",
            Self::Rsa4096 => "RSA-4096",
            Self::MlDsa44 => "ML-DSA-44",
        })
    }
}

/// Whether clients offer a session, and servers accept it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Resumption {
    /// Every handshake is full.
    Off,
    /// Every handshake offers a ticket of an earlier one.
    On,
}

/// One cell of the comparison.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The only version that client and servers accept.
    pub version: TlsVersion,
    /// The servers' key.
    pub key: KeyKind,
    /// Full or resumed handshakes.
    pub resumption: Resumption,
    /// The client's key exchange groups, colon-separated, by BoringSSL's names.
    pub groups: String,
    /// Connections in flight.
    pub clients: usize,
    /// Requests per connection; 0 means the handshake alone.
    pub requests: u32,
    /// Connections started per second, whether the server keeps up or not; if `None`, each starts when one ends.
    pub per_second: Option<f64>,
}

impl Scenario {
    /// Returns a load of `count` connections of this scenario, within `time_limit`.
    pub fn load(&self, target: SocketAddr, count: u64, time_limit: Duration) -> Load {
        Load {
            offer: Offer::new(self.version, &self.groups),
            resumed: if self.resumption == Resumption::On { 1.0 } else { 0.0 },
            connections: self.clients,
            requests: self.requests,
            pace: self.per_second.map_or(Pace::Closed, |per_second| Pace::Open { per_second }),
            count,
            time_limit,
            ..Load::new(target, "localhost")
        }
    }

    /// Returns the groups that servers accept: this scenario's, followed by the common defaults.
    pub fn accepted_groups(&self) -> String {
        const DEFAULT: &str = "X25519:P-256";
        let further = self.groups.split(':').filter(|group| !DEFAULT.split(':').any(|one| one == *group));
        further.chain([DEFAULT]).collect::<Vec<_>>().join(":")
    }

    /// Returns whether its key exchange is post-quantum, which TLS 1.2 does not offer.
    pub fn is_post_quantum(&self) -> bool {
        self.groups.contains("MLKEM")
    }

    /// Returns a short name without spaces, for the JSON.
    pub fn id(&self) -> String {
        let key = self.key.to_string().replace('-', "").to_lowercase();
        let resumed = if self.resumption == Resumption::On { "-resumed" } else { "" };
        format!(
            "tls{}-{key}-{}-{}clients{resumed}",
            self.version.number(),
            self.groups.to_lowercase(),
            self.clients
        )
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, key, groups, clients, .. } = self;
        let plural = if *clients == 1 { "" } else { "s" };
        let kind = if self.resumption == Resumption::On { "resumed" } else { "full" };
        write!(f, "TLS {}, {kind}, {key} certificate, {groups}, {clients} client{plural}", version.number())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_cells_apart() {
        let scenario = Scenario {
            version: TlsVersion::V1_3,
            key: KeyKind::Rsa2048,
            resumption: Resumption::Off,
            groups: "X25519".into(),
            clients: 1,
            requests: 1,
            per_second: None,
        };
        assert_eq!(scenario.id(), "tls1.3-rsa2048-x25519-1clients");
        assert_eq!(scenario.to_string(), "TLS 1.3, full, RSA-2048 certificate, X25519, 1 client");
        let resumed = Scenario { resumption: Resumption::On, ..scenario };
        assert_eq!(resumed.id(), "tls1.3-rsa2048-x25519-1clients-resumed");
        assert_eq!(resumed.accepted_groups(), "X25519:P-256");
        let hybrid = Scenario { groups: "X25519MLKEM768".into(), ..resumed };
        assert_eq!(hybrid.accepted_groups(), "X25519MLKEM768:X25519:P-256");
    }
}
