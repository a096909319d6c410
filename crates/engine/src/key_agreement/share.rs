//! Client and server key shares.

use quadrille_kernels::P256_POINT_BYTES;
use std::{fmt, time::Duration};
use zeroize::Zeroizing;

/// A group whose key exchange the engine computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Group {
    /// RFC 7748, RFC 8446.
    X25519,
    /// SP 800-186, RFC 8446 (`secp256r1`).
    P256,
    /// ML-KEM-768 and X25519 (draft-ietf-tls-ecdhe-mlkem).
    X25519MlKem768,
}

impl Group {
    /// The group of a TLS code point, if the engine computes it.
    pub fn from_code_point(code: u16) -> Option<Self> {
        [Self::X25519, Self::P256, Self::X25519MlKem768].into_iter().find(|group| group.code_point() == code)
    }

    /// TLS code point of the group.
    pub fn code_point(self) -> u16 {
        match self {
            Self::X25519 => 0x001d,
            Self::P256 => 0x0017,
            Self::X25519MlKem768 => 0x11ec,
        }
    }
}

/// Name in metrics and logs: `x25519`, `p256`, `x25519mlkem768`.
impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::X25519 => "x25519",
            Self::P256 => "p256",
            Self::X25519MlKem768 => "x25519mlkem768",
        })
    }
}

/// Bytes of an encoded public key of ML-KEM-768, and of a ciphertext (FIPS 203 table 3).
pub(crate) const ML_KEM_PUBLIC_KEY: usize = 1184;
pub(crate) const ML_KEM_CIPHERTEXT: usize = 1088;
/// Bytes of a decapsulation key, and of the seed at the end of a public key.
pub(crate) const ML_KEM_PRIVATE_KEY: usize = 2400;
const ML_KEM_SEED: usize = 32;
/// q (FIPS 203 section 2.4).
const ML_KEM_MODULUS: u16 = 3329;

/// Client's key share, of the right length for its group. Its contents are validated when the response is computed.
#[derive(Clone, Debug)]
pub struct ClientShare(Keys);

/// The client's public keys.
#[derive(Clone, Debug)]
enum Keys {
    X25519([u8; 32]),
    P256([u8; P256_POINT_BYTES]),
    X25519MlKem768([u8; 32], Box<[u8; ML_KEM_PUBLIC_KEY]>),
}

impl ClientShare {
    /// Parses the `key_exchange` of a `KeyShareEntry`; `None` if its length is wrong.
    pub fn new(group: Group, bytes: &[u8]) -> Option<Self> {
        Some(Self(match group {
            Group::X25519 => Keys::X25519(bytes.try_into().ok()?),
            Group::P256 => Keys::P256(bytes.try_into().ok()?),
            Group::X25519MlKem768 => {
                let (ml_kem, x25519) = bytes.split_at_checked(ML_KEM_PUBLIC_KEY)?;
                let ml_kem: Box<[u8]> = ml_kem.into();
                Keys::X25519MlKem768(x25519.try_into().ok()?, ml_kem.try_into().ok()?)
            }
        }))
    }

    pub(crate) fn x25519(&self) -> Option<&[u8; 32]> {
        match &self.0 {
            Keys::X25519(key) | Keys::X25519MlKem768(key, _) => Some(key),
            Keys::P256(_) => None,
        }
    }

    pub(crate) fn p256(&self) -> Option<&[u8; P256_POINT_BYTES]> {
        if let Keys::P256(key) = &self.0 { Some(key) } else { None }
    }

    pub(crate) fn ml_kem(&self) -> Option<&[u8; ML_KEM_PUBLIC_KEY]> {
        if let Keys::X25519MlKem768(_, key) = &self.0 { Some(key) } else { None }
    }

    /// Returns whether every coefficient of the ML-KEM key is reduced (FIPS 203 section 7.2); true without an ML-KEM
    /// key. Encapsulation checks this too; this function serves servers that must report it earlier.
    pub fn is_reduced(&self) -> bool {
        let Some(key) = self.ml_kem() else { return true };
        let coefficients = key[..ML_KEM_PUBLIC_KEY - ML_KEM_SEED].chunks_exact(3).flat_map(|bytes| {
            let [low, middle, high] = [bytes[0], bytes[1], bytes[2]].map(u16::from);
            [low | (middle & 0xf) << 8, middle >> 4 | high << 4]
        });
        // The key is public, so the check may stop at the first.
        coefficients.into_iter().all(|coefficient| coefficient < ML_KEM_MODULUS)
    }

    /// Group of the share.
    pub fn group(&self) -> Group {
        match &self.0 {
            Keys::X25519(_) => Group::X25519,
            Keys::P256(_) => Group::P256,
            Keys::X25519MlKem768(..) => Group::X25519MlKem768,
        }
    }
}

/// Server's key share and shared secret, with what their computation cost.
pub struct ServerShare {
    /// The group of both shares.
    pub group: Group,
    /// The `key_exchange` for the ServerHello.
    pub public: Vec<u8>,
    /// Shared secret, in the form used by the key schedule (RFC 8446 section 7.1).
    pub secret: Zeroizing<Vec<u8>>,
    /// Time that the client's share waited for the end of the turn.
    pub waited: Duration,
    /// Time to compute its batch.
    pub computed: Duration,
    /// Number of shares in the batch.
    pub batch: usize,
    /// CPU time attributed to this share: its part of the batch. Zero if no exchange of the batch is measured.
    pub cpu: Duration,
}

/// Shows the costs only, never the secret.
impl fmt::Debug for ServerShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, public: _, secret: _, waited, computed, batch, cpu } = self;
        let mut shown = f.debug_struct("ServerShare");
        shown.field("group", group).field("waited", waited).field("computed", computed);
        shown.field("batch", batch).field("cpu", cpu).finish_non_exhaustive()
    }
}
