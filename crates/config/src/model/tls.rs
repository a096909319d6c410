use super::{Acme, AcmeOrder, KeySource, Mode, Place, Source, TextMatch};
use std::time::Duration;

/// A certificate chain with its private key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateSource {
    /// PEM, leaf first.
    pub chain: Source,
    /// The private key, or where it is.
    pub key: KeySource,
    /// A DER OCSP response to staple (RFC 6066 section 8).
    pub ocsp: Option<Source>,
    /// How long operations of this key wait for a batch to fill, in place of [`EngineSettings::poll_delay`]; of a key
    /// that is on this machine.
    ///
    /// [`EngineSettings::poll_delay`]: super::EngineSettings::poll_delay
    pub poll_delay: Option<Duration>,
    /// Where each of these was written.
    pub chain_place: Place,
    /// Where the key was written.
    pub key_place: Place,
    /// Where the OCSP response was written.
    pub ocsp_place: Option<Place>,
    /// The order that the certificate comes from; until it is there, its names are not served.
    pub order: Option<AcmeOrder>,
}

impl CertificateSource {
    /// One that is ordered with this account, and kept in its state directory, in one file with its key unless that is
    /// on key servers.
    pub fn ordered(acme: &Acme, order: AcmeOrder, place: Place) -> Self {
        let file = Source::File(order.file(&acme.state));
        let key = match &order.keyless {
            Some(keyless) => KeySource::Keyless(keyless.clone()),
            None => KeySource::Pem(file.clone()),
        };
        Self {
            chain: file,
            key,
            ocsp: None,
            poll_delay: None,
            chain_place: place.clone(),
            key_place: place,
            ocsp_place: None,
            order: Some(order),
        }
    }

    /// Everything that is read from files or given in place.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        std::iter::once(&self.chain).chain(self.key.sources()).chain(&self.ocsp)
    }
}

/// Protocol versions, groups and client certificates of a chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsPolicy {
    /// Lowest version offered.
    pub min: Version,
    /// Highest version offered.
    pub max: Version,
    /// Key-exchange groups, most preferred first.
    pub groups: Vec<Group>,
    /// Cipher suites of TLS 1.2 and below, most preferred first, by OpenSSL's names; `[A|B]` are of equal preference.
    /// Empty: our own choice, to which `cbc` and `static_rsa` add.
    pub ciphers: Vec<String>,
    /// ALPN protocols, most preferred first; empty offers none.
    pub alpn: Vec<String>,
    /// Offer suites that encrypt by CBC in TLS 1.2; below it there are no others.
    pub cbc: bool,
    /// Offer RSA key exchange (no forward secrecy) in TLS 1.2 and below.
    pub static_rsa: bool,
    /// Accept RSA keys below 2048 bits.
    pub allow_weak_keys: bool,
    /// For which certificates OCSP responses are fetched.
    pub ocsp_stapling: OcspStapling,
    /// Whether clients present certificates.
    pub client_auth: ClientAuth,
}

/// Versions, cipher suites and groups that are offered to servers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TlsParameters {
    /// Lowest version.
    pub min: Version,
    /// Highest version.
    pub max: Version,
    /// Key-exchange groups, most preferred first.
    pub groups: Vec<Group>,
    /// Cipher suites of TLS 1.2 and below, by OpenSSL's names; empty: those that BoringSSL offers.
    pub ciphers: Vec<String>,
}

/// For which certificates OCSP responses are fetched from their authorities, to be stapled (RFC 6066 section 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OcspStapling {
    /// For none.
    Off,
    /// For those that clients refuse without one (RFC 7633).
    #[default]
    MustStaple,
    /// For every one that names a responder.
    On,
}

/// A TLS protocol version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum ClientAuth {
    /// Not asked for.
    #[default]
    Off,
    /// Asked for; one that is sent must pass.
    Optional(Box<ClientCheck>),
    /// A handshake without one that passes fails.
    Required(Box<ClientCheck>),
}

/// What a client's certificate must be. All that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientCheck {
    /// CAs that it must lead to (PEM); `None` only where pins are given.
    pub ca: Option<(Source, Place)>,
    /// Certificates that the CAs have revoked (PEM); with any, a chain without a valid list for each of its CAs fails.
    pub revoked: Option<(Source, Place)>,
    /// SHA-256 of the whole certificate, or of its public key: one of all these; both empty ask nothing.
    pub certificates: Vec<[u8; 32]>,
    /// SHA-256 of the SubjectPublicKeyInfo (RFC 7469 section 2.4).
    pub public_keys: Vec<[u8; 32]>,
    /// One of its subjectAltNames must be one of these; empty asks nothing.
    pub names: Vec<AltName>,
}

/// A condition on a subjectAltName (RFC 5280 section 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AltName {
    /// Which kind of name.
    pub kind: AltNameKind,
    /// What it must be.
    pub text: TextMatch,
}

/// Which kind of subjectAltName.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AltNameKind {
    /// `dNSName`.
    Dns,
    /// `uniformResourceIdentifier`, as in SPIFFE.
    Uri,
    /// `rfc822Name`.
    Email,
    /// `iPAddress`, compared as text.
    Ip,
}

impl ClientCheck {
    /// A certificate that leads to one of these CAs (PEM).
    pub fn ca(ca: Source, place: Place) -> Box<Self> {
        Box::new(Self { ca: Some((ca, place)), ..Self::default() })
    }

    /// Everything that is read from files or given in place.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ca.iter().chain(&self.revoked).map(|(source, _)| source)
    }
}

impl From<TlsPolicy> for TlsParameters {
    fn from(TlsPolicy { min, max, groups, ciphers, .. }: TlsPolicy) -> Self {
        Self { min, max, groups, ciphers }
    }
}

/// The same versions and groups as towards clients.
impl Default for TlsParameters {
    fn default() -> Self {
        TlsPolicy::default().into()
    }
}

impl TlsPolicy {
    /// What holds when nothing is said. A TCP listener offers no ALPN: only its upstream knows what it speaks.
    pub fn new(mode: Mode) -> Self {
        Self { alpn: mode.alpn(), ..Self::default() }
    }
}

impl Default for TlsPolicy {
    fn default() -> Self {
        Self {
            min: Version::Tls12,
            max: Version::Tls13,
            groups: vec![Group::X25519MlKem768, Group::X25519, Group::P256, Group::P384],
            ciphers: Vec::new(),
            alpn: Mode::Http.alpn(),
            cbc: false,
            static_rsa: false,
            allow_weak_keys: false,
            ocsp_stapling: OcspStapling::default(),
            client_auth: ClientAuth::Off,
        }
    }
}
