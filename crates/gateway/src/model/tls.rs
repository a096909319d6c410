use super::{KeySource, Mode, Place, Source};

/// A certificate chain with its private key.
#[derive(Clone, Debug)]
pub struct CertificateSource {
    /// PEM, leaf first.
    pub chain: Source,
    /// The private key, or where it is.
    pub key: KeySource,
    /// A DER OCSP response to staple (RFC 6066 section 8).
    pub ocsp: Option<Source>,
    /// Where each of these was written.
    pub chain_place: Place,
    /// Where the key was written.
    pub key_place: Place,
    /// Where the OCSP response was written.
    pub ocsp_place: Option<Place>,
}

/// Protocol versions, groups and client certificates of a listener.
#[derive(Clone, Debug)]
pub struct TlsPolicy {
    /// Lowest version offered.
    pub min: Version,
    /// Highest version offered.
    pub max: Version,
    /// Key-exchange groups, most preferred first.
    pub groups: Vec<Group>,
    /// ALPN protocols, most preferred first; empty offers none.
    pub alpn: Vec<String>,
    /// Offer RSA key exchange (no forward secrecy) in TLS 1.2 and below.
    pub static_rsa: bool,
    /// Accept RSA keys below 2048 bits.
    pub allow_weak_keys: bool,
    /// Whether clients present certificates.
    pub client_auth: ClientAuth,
}

/// A TLS protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// RFC 2246; by explicit choice only.
    Tls10,
    /// RFC 4346; by explicit choice only.
    Tls11,
    /// RFC 5246.
    Tls12,
    /// RFC 8446.
    Tls13,
}

/// A key-exchange group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Hybrid post-quantum key agreement (ML-KEM-768 with X25519).
    X25519MlKem768,
    /// RFC 7748.
    X25519,
    /// secp256r1.
    P256,
    /// secp384r1.
    P384,
    /// secp521r1.
    P521,
}

/// Whether clients present certificates.
#[derive(Clone, Debug, Default)]
pub enum ClientAuth {
    /// Not asked for.
    #[default]
    Off,
    /// Asked for; a certificate that is sent must verify against this CA bundle (PEM).
    Optional(Source, Place),
    /// A handshake without a valid one fails.
    Required(Source, Place),
}

impl TlsPolicy {
    /// What holds when nothing is said. A TCP listener offers no ALPN: only its upstream knows what it speaks.
    pub fn new(mode: Mode) -> Self {
        let alpn = match mode {
            Mode::Http => vec!["h2".into(), "http/1.1".into()],
            Mode::Tcp => Vec::new(),
        };
        Self { alpn, ..Self::default() }
    }
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self {
            min: Version::Tls12,
            max: Version::Tls13,
            groups: vec![Group::X25519MlKem768, Group::X25519, Group::P256, Group::P384],
            alpn: vec!["h2".into(), "http/1.1".into()],
            static_rsa: false,
            allow_weak_keys: false,
            client_auth: ClientAuth::Off,
        }
    }
}
