//! Signature algorithms that a client can verify, according to its ClientHello (RFC 8446 section 4.2.3, RFC 8422).

use super::ml_dsa_sets::MlDsaSets;
use boring::ssl::{ClientHello, ExtensionType};
use quadrille_engine::{KeyType, MlDsa};

/// Signature algorithms that a client can verify.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClientCapabilities {
    signatures: Signatures,
    /// Parameter sets of ML-DSA in signatures of certificates.
    in_chains: MlDsaSets,
    groups: Groups,
    /// Whether any suite with ECDSA authentication is offered, for TLS 1.2 and below. TLS 1.3 suites do not name one.
    ecdsa_suite: bool,
    rsa_suite: bool,
    tls13: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Signatures {
    rsa: bool,
    p256: bool,
    p384: bool,
    p521: bool,
    ed25519: bool,
    ml_dsa: MlDsaSets,
}

/// Curves on which the client can verify ECDSA in TLS 1.2 and below (RFC 8422 section 5.1). BoringSSL reads a missing
/// list as an empty one.
#[derive(Clone, Copy, Debug, Default)]
struct Groups {
    p256: bool,
    p384: bool,
    p521: bool,
}

/// Parts of a ClientHello that determine what its client can verify: the contents of extensions, and the cipher suites.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Offered<'a> {
    pub(super) versions: Option<&'a [u8]>,
    pub(super) signatures: Option<&'a [u8]>,
    /// Signatures of certificates, if they differ.
    pub(super) in_chains: Option<&'a [u8]>,
    pub(super) groups: Option<&'a [u8]>,
    pub(super) suites: &'a [u8],
}

impl ClientCapabilities {
    pub(crate) fn read(hello: &ClientHello<'_>) -> Self {
        Self::of(Offered {
            versions: hello.get_extension(ExtensionType::SUPPORTED_VERSIONS),
            signatures: hello.get_extension(ExtensionType::SIGNATURE_ALGORITHMS),
            in_chains: hello.get_extension(ExtensionType::SIGNATURE_ALGORITHMS_CERT),
            groups: hello.get_extension(ExtensionType::SUPPORTED_GROUPS),
            suites: hello.ciphers(),
        })
    }

    pub(super) fn of(offered: Offered<'_>) -> Self {
        let tls13 = offered.versions.is_some_and(offers_tls13);
        let signatures = match offered.signatures {
            Some(list) => Signatures::listed(list),
            // A client older than TLS 1.2 supports RSA and, if its suites include it, ECDSA.
            None => Signatures { rsa: true, p256: true, p384: true, p521: true, ..Signatures::default() },
        };
        let in_chains = offered.in_chains.map(Signatures::listed);
        let suites = || offered.suites.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        Self {
            signatures,
            in_chains: in_chains.unwrap_or(signatures).ml_dsa,
            groups: offered.groups.map(Groups::listed).unwrap_or_default(),
            ecdsa_suite: suites().any(is_ecdhe_ecdsa),
            rsa_suite: suites().any(|suite| !is_ecdhe_ecdsa(suite) && !is_tls13(suite)),
            tls13: tls13 && suites().any(is_tls13),
        }
    }

    /// Returns whether the client can verify a handshake with a key of this type. `max_tls13` is whether the listener
    /// supports TLS 1.3.
    pub(crate) fn can_verify(self, key: KeyType, max_tls13: bool) -> bool {
        let tls13 = self.tls13 && max_tls13;
        let (signature, suite) = match key {
            KeyType::Rsa { .. } => (self.signatures.rsa, self.rsa_suite),
            KeyType::EcdsaP256 => (self.signatures.p256, self.ecdsa_suite && self.groups.p256),
            KeyType::EcdsaP384 => (self.signatures.p384, self.ecdsa_suite && self.groups.p384),
            KeyType::EcdsaP521 => (self.signatures.p521, self.ecdsa_suite && self.groups.p521),
            KeyType::Ed25519 => (self.signatures.ed25519, self.ecdsa_suite),
            // TLS 1.2 has no such signatures.
            KeyType::MlDsa(set) => (self.signatures.ml_dsa.has(set), false),
        };
        signature && (tls13 || suite)
    }

    /// Returns whether the client supports TLS 1.3.
    pub(super) fn offers_tls13(self) -> bool {
        self.tls13
    }

    /// Returns whether the client can verify the signatures of a chain with these parameter sets.
    pub(crate) fn can_verify_chain(self, sets: MlDsaSets) -> bool {
        sets.are_in(self.in_chains)
    }
}

impl Groups {
    fn listed(extension: &[u8]) -> Self {
        let has = |group| code_points(extension).any(|listed| listed == group);
        Self { p256: has(23), p384: has(24), p521: has(25) }
    }
}

impl Signatures {
    fn listed(extension: &[u8]) -> Self {
        let mut able = Self::default();
        for scheme in code_points(extension) {
            match scheme {
                0x0201 | 0x0401 | 0x0501 | 0x0601 | 0x0804 | 0x0805 | 0x0806 => able.rsa = true,
                0x0403 => able.p256 = true,
                0x0503 => able.p384 = true,
                0x0603 => able.p521 = true,
                0x0807 => able.ed25519 = true,
                0x0904 => able.ml_dsa.add(MlDsa::MlDsa44),
                0x0905 => able.ml_dsa.add(MlDsa::MlDsa65),
                0x0906 => able.ml_dsa.add(MlDsa::MlDsa87),
                _ => {}
            }
        }
        able
    }
}

/// Reads a length-prefixed list of 16-bit code points.
fn code_points(extension: &[u8]) -> impl Iterator<Item = u16> {
    let list = extension.get(2..).unwrap_or_default();
    list.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

fn offers_tls13(extension: &[u8]) -> bool {
    extension.get(1..).unwrap_or_default().chunks_exact(2).any(|version| version == [3, 4])
}

fn is_tls13(suite: u16) -> bool {
    (0x1301..=0x1305).contains(&suite)
}

/// Returns whether the suite is one of the ECDHE_ECDSA suites that `context` offers.
fn is_ecdhe_ecdsa(suite: u16) -> bool {
    matches!(suite, 0xc009 | 0xc00a | 0xc02b | 0xc02c | 0xcca9)
}
