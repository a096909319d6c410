//! X25519 (RFC 7748): shared secrets with eight different scalars and eight different points at once (or four of each), and
//! public keys.
//!
//! ```text
//!   scalars, points ──> ladder ──> x : z ─┐
//!                                         ├─> z^-1 of up to 8 vectors by one exponentiation ──> x z^-1 ──> secrets
//!   scalars ──────────> comb ─> z+y : z-y ┘
//! ```
//!
//! There are eight lanes for AVX-512 IFMA and four for AVX2. The portable tier computes one operation at a time with
//! BoringSSL.

#[cfg(target_arch = "x86_64")]
pub(crate) mod batch;
#[cfg(target_arch = "x86_64")]
mod element;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
pub(crate) mod scalar;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

#[cfg(target_arch = "x86_64")]
pub(crate) use batch::{CombState, Differences, Digits, Kernels, LadderState};
#[cfg(target_arch = "x86_64")]
pub(crate) use element::{Eight, Element, Four, Layout};
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use tests::operate_on_undefined;

use std::fmt;

/// Length in bytes of a scalar, a point (its u-coordinate) and a secret.
pub const X25519_BYTES: usize = 32;

/// X25519 in a batch: the secret of a scalar and a point (RFC 7748, section 5).
///
/// Any 32 bytes are a scalar and any 32 bytes are a point: the scalar is clamped, the top bit of the point is
/// ignored, and a u-coordinate from p upwards is reduced modulo p.
pub struct Agreement<'a> {
    scalar: &'a [u8; X25519_BYTES],
    point: &'a [u8; X25519_BYTES],
    secret: &'a mut [u8; X25519_BYTES],
    all_zero: bool,
}

impl<'a> Agreement<'a> {
    /// Creates an operation for [`Lanes::agree`](crate::Lanes::agree), which stores its result in `secret`.
    pub fn new(
        scalar: &'a [u8; X25519_BYTES],
        point: &'a [u8; X25519_BYTES],
        secret: &'a mut [u8; X25519_BYTES],
    ) -> Self {
        Self { scalar, point, secret, all_zero: false }
    }

    /// Returns whether the computed secret is all zeros, because the point has a small order. TLS 1.3 must then abort
    /// (RFC 9846, section 7.4.2), with the alert that BoringSSL sends where its `X25519` returns 0.
    pub fn is_all_zero(&self) -> bool {
        self.all_zero
    }
}

impl fmt::Debug for Agreement<'_> {
    /// Does not show scalar, point or secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agreement").finish_non_exhaustive()
    }
}
