//! ML-DSA (FIPS 204): signatures of several messages at once, and their verification.
//!
//! ```text
//!            ┌─────────────────────── the next attempt, unless accepted ───────────────────────┐
//!            ▼                                                                                 │
//!  rho' ── masks y ── NTT ── A y ── NTT^-1 ── w1, w0 ──┬── hash ── c ──┬── z = y + c s1 ───────┤
//!            │                                         │               ├── r0 = w0 - c s2 ─────┤
//!            │                                         │               └── hints: c t0 ────────┘
//!            └── again, and compared ──────────────────┴── checks ── verification ── signature
//! ```
//!
//! A vector has two forms. Keccak has eight states, one in each lane of 64 bits: masks of eight polynomials, or hashes
//! of eight attempts. Arithmetic has 16 coefficients of one polynomial, so that attempts that end early cost nothing
//! more. [`schedule`] says which operation makes which attempt.

#[cfg(test)]
mod acvp;
mod attempt;
mod batch;
mod challenge;
mod expand;
mod external;
#[cfg(test)]
mod faults;
mod kernels;
mod key;
mod masks;
mod message;
mod ntt;
mod operation;
mod packing;
mod parameters;
mod polynomial;
mod portable;
mod rounding;
mod schedule;
mod shake;
mod sign;
mod sponge;
#[cfg(test)]
mod tests;
mod vector;
#[cfg(test)]
mod vectors;
mod verify;
mod workspace;

/// Implementations for [`Kernels`].
pub(crate) mod algorithm {
    pub(crate) use super::challenge::add_small_product;
    pub(crate) use super::masks::copy_block;
    pub(crate) use super::ntt::{inverse_ntt, multiply, multiply_matrix, ntt, ntt_of};
    pub(crate) use super::packing::unpack_mask;
    pub(crate) use super::rounding::{add, decompose, differences, largest, make_hints, subtract};
    pub(crate) use super::sponge::permute;
}

pub use external::{MlDsaCandidate, MlDsaNumbers, MlDsaStart};
pub use key::{MlDsaKey, MlDsaPublicKey};
pub use message::{MlDsaMessage, MlDsaSignature, MlDsaVerification};
pub use parameters::MlDsa;

pub(crate) use batch::Pool;
pub(crate) use portable::Portable;
pub(crate) use schedule::SLOTS;
#[cfg(all(test, target_arch = "x86_64"))]
pub(crate) use tests::operate_on_undefined;
#[cfg(target_arch = "x86_64")]
pub(crate) use {
    challenge::{Challenge, Small},
    kernels::Kernels,
    ntt::{Matrix, Q_INVERSE},
    packing::Packed,
    parameters::Gamma2,
    polynomial::{Block, Polynomial, Q},
    rounding::Bytes,
    sponge::State,
    vector::{STATES, StateVector, Vector},
};
