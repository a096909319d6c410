//! P-256 (SP 800-186, section 3.2.1.3): eight operations at once.
//!
//! ECDSA signatures (FIPS 186-5, section 6.4), each with its own key over its own digest:
//!
//! ```text
//!   key, digest, entropy ──SHA-512──> nonce k ──> comb ──> k G = x : y : z ──> x z^-2, y z^-3 ──> r ─┐
//!                                     │                        │                                     ├─> s ──> checks
//!                                     └──────────> 1 / k       └─> tags                              │
//!                                                    └───────────────────────────────────────────────┘
//! ```
//!
//! Shared secrets (SP 800-56A, section 5.7.1.2), each for its own scalar and point, and public keys:
//!
//! ```text
//!   points ──checks──> tables of odd multiples ──1 / z──┐
//!                                                       ├──windows──> x : z ──x z^-2──> secrets
//!   scalars ──odd digits────────────────────────────────┘
//!   scalars ──> comb ──> x : y : z ──x z^-2, y z^-3──> public keys
//! ```
//!
//! There are lanes only for AVX-512 IFMA. Elsewhere BoringSSL computes secrets and public keys.

mod agreement;
#[cfg(target_arch = "x86_64")]
pub(crate) mod batch;
#[cfg(target_arch = "x86_64")]
mod comb;
#[cfg(target_arch = "x86_64")]
mod element;
#[cfg(target_arch = "x86_64")]
pub(crate) mod exchange;
#[cfg(all(test, target_arch = "x86_64"))]
mod exchange_tests;
#[cfg(all(test, target_arch = "x86_64"))]
mod faults;
#[cfg(target_arch = "x86_64")]
mod inverse;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
mod modulus;
#[cfg(target_arch = "x86_64")]
mod multiple;
#[cfg(target_arch = "x86_64")]
mod nonce;
pub(crate) mod scalar;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

pub use agreement::{P256_POINT_BYTES, P256Agreement};
#[cfg(target_arch = "x86_64")]
pub(crate) use comb::{CombState, Kernels, TABLE, WINDOWS};
#[cfg(target_arch = "x86_64")]
pub(crate) use element::{Element, U64x8};
#[cfg(target_arch = "x86_64")]
pub(crate) use multiple::{PointKernels, PointState, Table};
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use tests::operate_on_undefined;

use modulus::{N, Number, from_bytes};
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Length in bytes of a private key, of a coordinate, of a secret, and of each half of a signature.
pub const P256_BYTES: usize = 32;

/// Private key of P-256, in the form used by lanes.
pub struct P256Key {
    /// Private key as it is, for the nonce and for the check.
    d: Number,
    /// Private key times 2^260, for the signature: stored separately, so that a fault in either is detected.
    montgomery: Number,
}

impl P256Key {
    /// Creates a key from a big-endian number; `None` if it is zero or not below the group's order.
    pub fn new(d: &[u8; P256_BYTES]) -> Option<Self> {
        let d = Zeroizing::new(from_bytes(d));
        N.holds(&d).then(|| Self { montgomery: N.montgomery(&d), d: *d })
    }
}

impl Drop for P256Key {
    fn drop(&mut self) {
        self.d.zeroize();
        self.montgomery.zeroize();
    }
}

impl fmt::Debug for P256Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("P256Key").finish_non_exhaustive()
    }
}

/// Signature in a batch.
pub struct P256Signature<'a> {
    key: &'a P256Key,
    digest: &'a [u8],
    signature: &'a mut [u8; 2 * P256_BYTES],
    signed: bool,
}

impl<'a> P256Signature<'a> {
    /// Creates a signature over a digest, 32 bytes of which are used, for
    /// [`Lanes::sign_p256`](crate::Lanes::sign_p256), which stores r and s, each big-endian, in `signature`.
    pub fn new(key: &'a P256Key, digest: &'a [u8], signature: &'a mut [u8; 2 * P256_BYTES]) -> Self {
        Self { key, digest, signature, signed: false }
    }

    /// Returns whether `signature` holds a signature that has passed its checks. Otherwise it is unchanged.
    pub fn is_signed(&self) -> bool {
        self.signed
    }

    /// Converts the digest as defined by FIPS 186-5: its leftmost 256 bits.
    #[cfg(target_arch = "x86_64")]
    fn digest_bytes(&self) -> [u8; P256_BYTES] {
        let mut bytes = [0; P256_BYTES];
        let counting = &self.digest[..self.digest.len().min(P256_BYTES)];
        bytes[P256_BYTES - counting.len()..].copy_from_slice(counting);
        bytes
    }
}

impl fmt::Debug for P256Signature<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("P256Signature").field("signed", &self.signed).finish_non_exhaustive()
    }
}
