use super::{Acme, AcmeOrder, KeySource, Mode, Place, Source, TextMatch, TrustAnchor};
use std::time::Duration;

/// A certificate chain with its private key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CertificateSource {
    /// The chain in PEM, leaf first.
    pub chain: Source,
    /// The private key, or its key servers.
    pub key: KeySource,
    /// A DER OCSP response to staple (RFC 6066 section 8).
    pub ocsp: Option<Source>,
    /// Time that operations of this key wait for a batch to fill, in place of [`EngineSettings::poll_delay`]; for a
    /// key on this machine.
    ///
    /// [`EngineSettings::poll_delay`]: super::EngineSettings::poll_delay
    pub poll_delay: Option<Duration>,
    /// The place of the chain in the configuration.
    pub chain_place: Place,
    /// The place of the key.
    pub key_place: Place,
    /// The place of the OCSP response.
    pub ocsp_place: Option<Place>,
    /// The ACME order of the certificate; until it is issued, its names are not served.
    pub order: Option<AcmeOrder>,
    /// The trust anchor that a client must request to receive the chain; `None` for all clients.
    pub trust_anchor: Option<TrustAnchor>,
}

impl CertificateSource {
    /// Returns a certificate that is ordered with this account, and stored in its state directory, in one file with
    /// its key unless the key is on key servers.
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
            trust_anchor: None,
        }
    }

    /// Returns all sources: files and inline values.
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
    /// Empty: the default suites, to which `cbc` and `static_rsa` add.
    pub ciphers: Vec<String>,
    /// ALPN protocols, most preferred first; empty offers none.
    pub alpn: Vec<String>,
    /// Whether CBC suites are offered in TLS 1.2; lower versions have no others.
    pub cbc: bool,
    /// Whether RSA key exchange (no forward secrecy) is offered in TLS 1.2 and below.
    pub static_rsa: bool,
    /// Whether RSA keys below 2048 bits are accepted.
    pub allow_weak_keys: bool,
    /// The certificates for which OCSP responses are fetched.
    pub ocsp_stapling: OcspStapling,
    /// Whether certificates are compressed for clients that support it (RFC 8879).
    pub certificate_compression: bool,
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

/// The certificates for which OCSP responses are fetched from their authorities and stapled (RFC 6066 section 8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OcspStapling {
    /// No certificates.
    Off,
    /// Certificates that clients refuse without a staple (RFC 7633).
    #[default]
    MustStaple,
    /// All certificates that name a responder.
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
    /// No certificate is requested.
    #[default]
    Off,
    /// A certificate is requested; one that is sent must pass the check.
    Optional(Box<ClientCheck>),
    /// A certificate is required; a handshake without a valid one fails.
    Required(Box<ClientCheck>),
}

/// Checks of a client's certificate, all of which must pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientCheck {
    /// CAs that it must chain to (PEM); `None` only if pins are given.
    pub ca: Option<(Source, Place)>,
    /// Certificate revocation lists (PEM); if there are any, a chain without a valid list for each of its CAs fails.
    pub revoked: Option<(Source, Place)>,
    /// Pins: SHA-256 of the whole certificate. One of `certificates` and `public_keys` must match, unless both are
    /// empty.
    pub certificates: Vec<[u8; 32]>,
    /// Pins: SHA-256 of the SubjectPublicKeyInfo (RFC 7469 section 2.4).
    pub public_keys: Vec<[u8; 32]>,
    /// Conditions on subjectAltNames, one of which must match; empty checks nothing.
    pub names: Vec<AltName>,
}

/// A condition on a subjectAltName (RFC 5280 section 4.2.1.6).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AltName {
    /// The kind of name.
    pub kind: AltNameKind,
    /// The condition on its text.
    pub text: TextMatch,
}

/// The kind of subjectAltName.
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
    /// Returns a check that a certificate chains to one of these CAs (PEM).
    pub fn ca(ca: Source, place: Place) -> Box<Self> {
        Box::new(Self { ca: Some((ca, place)), ..Self::default() })
    }

    /// Returns all sources: files and inline values.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ca.iter().chain(&self.revoked).map(|(source, _)| source)
    }
}

impl From<TlsPolicy> for TlsParameters {
    fn from(TlsPolicy { min, max, groups, ciphers, .. }: TlsPolicy) -> Self {
        Self { min, max, groups, ciphers }
    }
}

/// Versions and groups equal to those for clients, and P-521: in TLS 1.2, a server's certificate has one of the groups
/// (RFC 8422 section 5.1).
impl Default for TlsParameters {
    fn default() -> Self {
        let mut parameters = Self::from(TlsPolicy::default());
        parameters.groups.push(Group::P521);
        parameters
    }
}

impl TlsPolicy {
    /// Returns the default policy. A TCP listener offers no ALPN: the protocols depend on its upstream.
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
            certificate_compression: true,
            client_auth: ClientAuth::Off,
        }
    }
}
