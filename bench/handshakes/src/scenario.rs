//! What is asked of every server alike.

use std::fmt;

use boring::ssl::SslVersion;
use clap::ValueEnum;

/// TLS protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    #[value(name = "1.2")]
    V1_2,
    /// TLS 1.3 (RFC 8446).
    #[value(name = "1.3")]
    V1_3,
}

impl TlsVersion {
    /// The version as BoringSSL names it.
    pub fn boring(self) -> SslVersion {
        match self {
            Self::V1_2 => SslVersion::TLS1_2,
            Self::V1_3 => SslVersion::TLS1_3,
        }
    }

    /// `1.2` or `1.3`.
    pub fn number(self) -> &'static str {
        match self {
            Self::V1_2 => "1.2",
            Self::V1_3 => "1.3",
        }
    }
}

/// The certificate's key, and so the private-key operation of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum KeyKind {
    /// ECDSA on P-256.
    #[value(name = "p256")]
    P256,
    /// RSA with a modulus of 2048 bits.
    #[value(name = "rsa2048")]
    Rsa2048,
}

impl fmt::Display for KeyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::P256 => "P-256",
            Self::Rsa2048 => "RSA-2048",
        })
    }
}

/// How clients come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Resumed {
    /// With a ticket.
    Ticket,
    /// With a session id; TLS 1.2 only.
    Id,
}

impl fmt::Display for Resumed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ticket => "ticket",
            Self::Id => "id",
        })
    }
}

/// One cell of the comparison.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The only version that client and servers offer.
    pub version: TlsVersion,
    /// The servers' key.
    pub key: KeyKind,
    /// The client's key exchange groups, colon-separated as BoringSSL names them.
    pub groups: String,
    /// Connections in flight.
    pub clients: usize,
    /// Requests on each connection; 0 is the handshake alone.
    pub requests: u32,
    /// How clients come back; `None` makes every handshake a full one.
    pub resumed: Option<Resumed>,
}

impl Scenario {
    /// A short name without spaces, for the JSON.
    pub fn id(&self) -> String {
        let key = self.key.to_string().replace('-', "").to_lowercase();
        let resumed = self.resumed.map(|resumed| format!("-{resumed}")).unwrap_or_default();
        let (version, groups) = (self.version.number(), self.groups.to_lowercase());
        format!("tls{version}-{key}-{groups}-{}clients{resumed}", self.clients)
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { version, key, groups, clients, .. } = self;
        let plural = if *clients == 1 { "" } else { "s" };
        write!(f, "TLS {}, {key} certificate, {groups}, {clients} client{plural}", version.number())?;
        self.resumed.map_or(Ok(()), |resumed| write!(f, ", resumed by {resumed}"))
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
            groups: "X25519".into(),
            clients: 1,
            requests: 1,
            resumed: None,
        };
        assert_eq!(scenario.id(), "tls1.3-rsa2048-x25519-1clients");
        assert_eq!(scenario.to_string(), "TLS 1.3, RSA-2048 certificate, X25519, 1 client");
    }
}
