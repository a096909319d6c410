//! X25519, and ECDH on P-256, on the chosen tier.

use crate::lanes::{Backend, Lanes};
#[cfg(target_arch = "x86_64")]
use crate::p256::exchange;
use crate::p256::{self, P256_BYTES, P256_POINT_BYTES, P256Agreement};
use crate::x25519::{Agreement, X25519_BYTES, scalar};
#[cfg(target_arch = "x86_64")]
use crate::x25519::{Eight, Four, Layout, batch};

impl Lanes {
    /// Number of [`agree`](Self::agree)'s operations that run at once: 8, 4 or 1. Any number up to this costs the
    /// same, except that a single operation is computed by BoringSSL; twice as many, which share an inversion, cost
    /// less than twice the time.
    pub fn x25519_width(&self) -> usize {
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(_) => Four::LANES,
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(_) => Eight::LANES,
            _ => 1,
        }
    }

    /// Computes every secret of the batch, in time that does not depend on scalars or points. An all-zero secret is
    /// written, and marked.
    pub fn agree(&self, batch: &mut [Agreement<'_>]) {
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(pool) if batch.len() >= batch::LEAST_AGREEMENTS => {
                batch::agree(pool.arithmetic(), batch);
            }
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) if batch.len() >= batch::LEAST_AGREEMENTS => {
                batch::agree(pool.arithmetic(), batch);
            }
            _ => batch.iter_mut().for_each(scalar::agree),
        }
    }

    /// Computes the public keys of X25519 scalars: `public_keys[i]` = X25519(`scalars[i]`, 9). Multiples of eight, up
    /// to 64, are fastest.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn x25519_public_keys(&self, scalars: &[[u8; X25519_BYTES]], public_keys: &mut [[u8; X25519_BYTES]]) {
        assert_eq!(scalars.len(), public_keys.len(), "a public key for every scalar");
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Avx2(pool) if scalars.len() >= batch::LEAST_PUBLIC_KEYS => {
                batch::public_keys(pool.arithmetic(), scalars, public_keys);
            }
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) if scalars.len() >= batch::LEAST_PUBLIC_KEYS => {
                batch::public_keys(pool.arithmetic(), scalars, public_keys);
            }
            _ => scalars.iter().zip(public_keys).for_each(|(scalar, key)| scalar::public_key(scalar, key)),
        }
    }
    /// Computes every secret of the batch with a valid scalar and point, in time that does not depend on scalars. Any
    /// number up to [`p256_width`](Self::p256_width) costs the same; twice as many, which share inversions, cost less
    /// than twice the time. Without lanes BoringSSL computes, one at a time.
    pub fn agree_p256(&self, batch: &mut [P256Agreement<'_>]) {
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) => exchange::agree(pool.arithmetic(), batch),
            _ => batch.iter_mut().for_each(p256::scalar::agree),
        }
    }

    /// Computes the public keys of scalars on P-256, uncompressed. Multiples of eight, up to 64, are fastest. The
    /// result for a scalar that is zero or not below the group's order is 65 zeros, which is not a valid key.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn p256_public_keys(&self, scalars: &[[u8; P256_BYTES]], public_keys: &mut [[u8; P256_POINT_BYTES]]) {
        assert_eq!(scalars.len(), public_keys.len(), "a public key for every scalar");
        match self.backend() {
            #[cfg(target_arch = "x86_64")]
            Backend::Ifma(pool) => exchange::public_keys(pool.arithmetic(), scalars, public_keys),
            _ => {
                let each = scalars.iter().zip(public_keys);
                each.for_each(|(scalar, key)| p256::scalar::public_key(scalar, key));
            }
        }
    }
}
