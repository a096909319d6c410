//! ML-KEM-768 (FIPS 203) encapsulation for the public keys of up to eight clients at once, or of one.
//!
//! ```text
//!  ek ── H ─┐                      ┌─ e1, e2, message ───────────┐
//!  m ───────┴─ G ─┬─ r ── noise ───┴─ y ── NTT ─┐                │
//!                 └─ K                          ├─ product ─ NTT^-1 ─ + ── Compress ── ciphertext
//!  ek ── seed ── SHAKE128 ── A ── transposed ───┤
//!  ek ── t ─────────────────── transposed ──────┘
//! ```
//!
//! A vector has two forms. Keccak has a client, or an entry of A, in each of eight lanes of 64 bits. Polynomials have
//! one coefficient of 32 of them in the words of 16 bits: four in each client's lane, those of u and v. Arithmetic
//! therefore moves no data within a vector; only input and output are transposed. A lone operation has a layout of
//! its own, in which vectors hold coefficients of one polynomial.
//!
//! There are lanes only for AVX-512 with VBMI. Only public data controls branches: a key and all values derived from
//! it alone (A, t, H(ek)), and the number of clients. All other data is secret until it is a ciphertext.

mod batch;
mod compression;
mod encapsulate;
mod keccak;
mod kernels;
mod lone;
mod matrix;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
mod noise;
mod ntt;
mod polynomial;
mod public;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
mod vector;
mod workspace;

/// Implementations for [`Kernels`].
pub(crate) mod algorithm {
    pub(crate) use super::encapsulate::encapsulate;
    pub(crate) use super::keccak::keccak;
    pub(crate) use super::lone::encapsulate_lone;
    pub(crate) use super::matrix::sample;
    pub(crate) use super::ntt::{inverse_ntt, ntt};
    pub(crate) use super::workspace::wipe;
}

pub(crate) use batch::Pool;
pub(crate) use keccak::State;
pub(crate) use kernels::Kernels;
pub(crate) use matrix::{Entry, Stream};
pub(crate) use ntt::{Polynomials, Q};
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use tests::operate_on_undefined;
pub(crate) use vector::{LANES, VECTOR_BYTES, Vector};
pub(crate) use workspace::{LoneSecrets, Secrets, Workspace};

use std::fmt;

/// Bytes of an encoded public key of ML-KEM-768 (FIPS 203, table 3).
pub const ML_KEM_PUBLIC_KEY_BYTES: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT_BYTES: usize = 1088;

pub(crate) type PublicKey = [u8; ML_KEM_PUBLIC_KEY_BYTES];

/// Encapsulation in a batch.
pub struct Encapsulation<'a> {
    key: &'a PublicKey,
    randomness: &'a [u8; 32],
    ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT_BYTES],
    secret: &'a mut [u8; 32],
    outcome: Outcome,
}

/// Outcome of an [`Encapsulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Operation not computed, because there are no lanes.
    Open,
    /// Ciphertext and secret are computed.
    Computed,
    /// Invalid public key: a coefficient is not below q (FIPS 203, section 7.2).
    InvalidKey,
}

impl<'a> Encapsulation<'a> {
    /// Creates an operation for [`Lanes::encapsulate`](crate::Lanes::encapsulate) with the client's public key: FIPS
    /// 203, algorithm 17, with 32 bytes that must be random, secret and never reused.
    pub fn new(
        key: &'a [u8; ML_KEM_PUBLIC_KEY_BYTES],
        randomness: &'a [u8; 32],
        ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT_BYTES],
        secret: &'a mut [u8; 32],
    ) -> Self {
        Self { key, randomness, ciphertext, secret, outcome: Outcome::Open }
    }

    /// Outcome of the operation.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl fmt::Debug for Encapsulation<'_> {
    /// Does not show key, randomness, ciphertext or secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encapsulation").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
