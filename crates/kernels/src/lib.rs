//! Several RSA private-key operations at once, one in each lane of a vector register; or several key exchanges.
//!
//! A TLS server spends most of a handshake's CPU on one RSA private operation. One operation cannot fill a vector
//! unit; several independent ones can. This crate takes operations (each with its own key and input), runs them side
//! by side, checks every result with the public key, and returns them:
//!
//! | tier | CPU | operations at once | arithmetic |
//! |---|---|---|---|
//! | `ifma` | AVX-512 IFMA: Ice Lake, Zen 4 and later | 8 | integer multiply-add, 52-bit digits |
//! | `avx2` | AVX2 and FMA3: Haswell, Zen and later | 4 | double-precision multiply-add, 46-bit signed digits |
//! | `portable` | any | 1 | BoringSSL's |
//!
//! X25519 ([`Agreement`], [`Lanes::x25519_public_keys`]) and ML-DSA ([`MlDsaSignature`], [`MlDsaVerification`]) have
//! lanes in both vector tiers.
//! P-256 (ECDSA: [`P256Signature`], ECDH: [`P256Agreement`]) and ML-KEM-768 ([`Encapsulation`]) have lanes in the `ifma`
//! tier alone.
//!
//! It does not collect operations (`quadrille-engine` does), implements neither padding nor TLS, and generates no
//! keys.
//!
//! ```
//! # fn example(components: &quadrille_kernels::Components<'_>, input: &[u8]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
//! use quadrille_kernels::{Lanes, PrivateKey, PrivateOperation};
//!
//! let lanes = Lanes::detect()?; // once a process
//! let key = PrivateKey::new(components)?; // once a key
//! let mut output = vec![0; key.size().bytes()];
//! let mut batch = [PrivateOperation::new(&key, input, &mut output)]; // best: lanes.width() of them
//! lanes.private_operations(&mut batch);
//! batch[0].outcome()?;
//! # Ok(output)
//! # }
//! ```
//!
//! # Guarantees
//!
//! - **Secrets**: no branch and no address depends on a key, an input or an intermediate value (verified by valgrind
//!   in `src/secrecy.rs`, and by inspection of the kernels' text in `src/x86_64/`); memory with secrets is cleared.
//! - **Faults**: a result is released only if raising it to the public exponent yields the input.
//! - **Bounds**: `docs/kernels/` proves that no digit overflows.
//!
//! # Files
//!
//! `codegen/` generates the assembly when the crate is built, and `x86_64` wraps it. `batch` holds the parts that
//! all RSA tiers share; `x25519`, `p256`, `ml_kem` and `ml_dsa` compute the
//! other algorithms. `portable` is the oracle of all
//! tests.

#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, reason = "no vector tier for this architecture yet")
)]
mod batch;
mod cpu;
mod encapsulation;
mod keccak;
mod key;
mod key_exchange;
mod lanes;
mod lattice_signatures;
mod ml_dsa;
mod ml_dsa_tier;
#[cfg_attr(
    not(target_arch = "x86_64"),
    expect(dead_code, unused_imports, reason = "no lanes for this architecture yet")
)]
mod ml_kem;
mod p256;
mod portable;
mod secrecy;
mod signatures;
mod x25519;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use cpu::{CEILING_VARIABLE, Ceiling, UnknownTier};
pub use key::PrivateKey;
pub use lanes::{Computed, Lanes};
pub use ml_dsa::{
    MlDsa, MlDsaCandidate, MlDsaKey, MlDsaMessage, MlDsaNumbers, MlDsaPublicKey, MlDsaSignature, MlDsaStart,
    MlDsaVerification,
};
pub use ml_kem::{Encapsulation, ML_KEM_CIPHERTEXT_BYTES, ML_KEM_PUBLIC_KEY_BYTES, Outcome};
pub use p256::{P256_BYTES, P256_POINT_BYTES, P256Agreement, P256Key, P256Signature};
pub use quadrille_rsa_numbers::{
    Components, InputError, KeyError, KeySize, PrivateOperation, PrivateOperationError,
};
pub use x25519::{Agreement, X25519_BYTES};
