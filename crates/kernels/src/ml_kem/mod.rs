//! ML-KEM-768 (FIPS 203): secrets encapsulated for the public keys of up to eight clients at once.
//!
//! ```text
//!  ek ── H ─┐                      ┌─ e1, e2, message ───────────┐
//!  m ───────┴─ G ─┬─ r ── noise ───┴─ y ── NTT ─┐                │
//!                 └─ K                          ├─ product ─ NTT^-1 ─ + ── Compress ── ciphertext
//!  ek ── seed ── SHAKE128 ── A ── transposed ───┤
//!  ek ── t ─────────────────── transposed ──────┘
//! ```
//!
//! There are two forms of a vector. Keccak has a client, or an entry of A, in each of eight lanes of 64 bits.
//! Polynomials have one coefficient of 32 of them in the words of 16 bits: four in each client's lane, those of u and
//! v. So that no arithmetic moves anything within a vector, and only what enters and what leaves is transposed.
//!
//! There are lanes for AVX-512 with VBMI alone, and nothing elsewhere. What is public steers branches: a key and all
//! that follows from it alone (A, t, H(ek)), and how many clients there are. Everything else is secret until it is a
//! ciphertext.

mod batch;
mod compression;
mod encapsulate;
mod keccak;
mod kernels;
mod matrix;
#[cfg(all(test, target_arch = "x86_64"))]
mod model;
mod noise;
mod ntt;
mod public;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;
mod vector;
mod workspace;

/// What [`Kernels`] are made of.
pub(crate) mod algorithm {
    pub(crate) use super::encapsulate::encapsulate;
    pub(crate) use super::keccak::keccak;
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
pub(crate) use workspace::{Secrets, Workspace};

use std::fmt;

/// Bytes of an encoded public key of ML-KEM-768 (FIPS 203, table 3).
pub const ML_KEM_PUBLIC_KEY_BYTES: usize = 1184;
/// Bytes of a ciphertext of ML-KEM-768.
pub const ML_KEM_CIPHERTEXT_BYTES: usize = 1088;

pub(crate) type PublicKey = [u8; ML_KEM_PUBLIC_KEY_BYTES];

/// One encapsulation of a batch.
pub struct Encapsulation<'a> {
    key: &'a PublicKey,
    randomness: &'a [u8; 32],
    ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT_BYTES],
    secret: &'a mut [u8; 32],
    outcome: Outcome,
}

/// What has become of an [`Encapsulation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing: it was not computed, for there are no lanes.
    Open,
    /// Ciphertext and secret are there.
    Computed,
    /// The public key is none, for a coefficient is not below q (FIPS 203, section 7.2).
    InvalidKey,
}

impl<'a> Encapsulation<'a> {
    /// An operation that [`Lanes::encapsulate`](crate::Lanes::encapsulate) will compute for the client with this public
    /// key: FIPS 203, algorithm 17, with 32 bytes that must be random, secret and never used again.
    pub fn new(
        key: &'a [u8; ML_KEM_PUBLIC_KEY_BYTES],
        randomness: &'a [u8; 32],
        ciphertext: &'a mut [u8; ML_KEM_CIPHERTEXT_BYTES],
        secret: &'a mut [u8; 32],
    ) -> Self {
        Self { key, randomness, ciphertext, secret, outcome: Outcome::Open }
    }

    /// What became of it.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }
}

impl fmt::Debug for Encapsulation<'_> {
    /// Says nothing of key, randomness, ciphertext or secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encapsulation").field("outcome", &self.outcome).finish_non_exhaustive()
    }
}
