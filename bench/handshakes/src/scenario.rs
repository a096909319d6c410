//! What is asked of every server alike.

use std::{fmt, net::SocketAddr, time::Duration};

use clap::ValueEnum;
use quadrille_profile::load::{Load, Offer, Pace, TlsVersion};

/// The certificate's key, and so the private-key operation of a handshake.
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
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P256 => "P-256",
            Self::Rsa2048 => "RSA-2048",
            Self::Rsa4096 => "RSA-4096",
        })
    }
}

/// Whether clients come back with a session, and servers take it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Resumption {
    /// Every handshake is a full one.
    Off,
    /// Every handshake offers a ticket of an earlier one.
    On,
}

/// One cell of the comparison.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The only version that client and servers offer.
    pub version: TlsVersion,
    /// The servers' key.
    pub key: KeyKind,
    /// Full or resumed handshakes.
    pub resumption: Resumption,
    /// The client's key exchange groups, colon-separated as BoringSSL names them.
    pub groups: String,
    /// Connections in flight.
    pub clients: usize,
    /// Requests on each connection; 0 is the handshake alone.
    pub requests: u32,
    /// Connections that begin each second, whether the server keeps up or not; without, each begins when one ends.
    pub per_second: Option<f64>,
}

impl Scenario {
    /// `count` connections as this asks for them, within `time_limit`.
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

    /// What servers are told to accept: everybody's defaults, and before them what this asks for.
    pub fn accepted_groups(&self) -> String {
        const DEFAULT: &str = "X25519:P-256";
        let further = self.groups.split(':').filter(|group| !DEFAULT.split(':').any(|one| one == *group));
        further.chain([DEFAULT]).collect::<Vec<_>>().join(":")
    }

    /// Whether its key exchange withstands quantum computers, which TLS 1.2 has none of.
    pub fn is_post_quantum(&self) -> bool {
        self.groups.contains("MLKEM")
    }

    /// A short name without spaces, for the JSON.
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
