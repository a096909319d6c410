//! Private keys: the numbers that the kernels use, and their place on the device.

use super::set::{MlDsaSet, N};
use crate::keys::{KeySlot, KeyStore};
use std::{fmt, sync::Arc};
use zeroize::Zeroizing;

/// FIPS 204, table 1.
const Q: i32 = 8_380_417;
/// 1 / q modulo 2^32.
const Q_INVERSE: i32 = 58_728_449;

/// Numbers of a private key, polynomial after polynomial. A and t0 are transformed, in the order of FIPS 204 (algorithm
/// 41), s1 and s2 are not. All are the nearest to zero modulo q.
#[derive(Clone, Copy)]
pub struct MlDsaKeyNumbers<'a> {
    /// A, row by row.
    pub matrix: &'a [i32],
    /// s1
    pub s1: &'a [i32],
    /// s2
    pub s2: &'a [i32],
    /// t0, transformed.
    pub t0: &'a [i32],
}

/// Private key in the form that is uploaded.
pub struct MlDsaPrivateKey {
    pub(super) set: MlDsaSet,
    pub(super) words: Zeroizing<Vec<u32>>,
}

/// Key in the device's memory, which is wiped on drop.
pub struct MlDsaDeviceKey {
    pub(super) set: MlDsaSet,
    pub(super) slot: KeySlot,
}

impl MlDsaPrivateKey {
    /// Transforms what is not yet transformed.
    ///
    /// # Panics
    /// If the numbers are not as many as the parameter set's.
    pub fn new(set: MlDsaSet, numbers: &MlDsaKeyNumbers<'_>) -> Self {
        let MlDsaKeyNumbers { matrix, s1, s2, t0 } = *numbers;
        let (k, l) = set.dimensions();
        assert_eq!([matrix, s1, s2, t0].map(<[i32]>::len), [k * l, l, k, k].map(|count| N * count));
        let mut small = Zeroizing::new([s1, s2].concat());
        small.as_chunks_mut().0.iter_mut().for_each(transform);
        let mut words = Zeroizing::new(Vec::with_capacity(set.key_words()));
        words.extend([matrix, &small, t0].into_iter().flatten().map(|number| *number as u32));
        debug_assert_eq!(
            words.len(),
            set.key_words(),
            "the vector was not reallocated, which would leave a copy"
        );
        Self { set, words }
    }

    /// Words to upload, for tests that run the kernels without a driver. They are as secret as the key.
    #[doc(hidden)]
    pub fn words_for_tests(&self) -> &[u32] {
        &self.words
    }
}

impl MlDsaDeviceKey {
    /// Parameter set of the key.
    pub fn parameter_set(&self) -> MlDsaSet {
        self.set
    }

    /// Slot number of the key, if it belongs to that store.
    pub(super) fn slot_in(&self, store: &Arc<KeyStore>) -> Option<u32> {
        self.slot.number_in(store)
    }
}

/// Constants of the kernels: the factors of the transform, and Keccak's round constants, two words each.
#[doc(hidden)]
pub fn constants() -> Vec<u32> {
    let zetas = (0..N).map(|k| zeta(k) as u32);
    let rounds = keccak_rounds().into_iter().flat_map(|round| [round as u32, (round >> 32) as u32]);
    zetas.chain(rounds).collect()
}

/// zetas[k] of FIPS 204, appendix B, times 2^32 modulo q, nearest to zero.
fn zeta(k: usize) -> i32 {
    let exponent = (k as u8).reverse_bits();
    let q = i64::from(Q);
    let power = (0..exponent).fold(1, |power, _| power * 1753 % q);
    let scaled = (power << 32) % q;
    (if scaled > q / 2 { scaled - q } else { scaled }) as i32
}

/// Round constants of Keccak (FIPS 202, algorithm 5).
fn keccak_rounds() -> [u64; 24] {
    let mut register = 1u8;
    std::array::from_fn(|_| {
        (0..7).fold(0, |round, bit| {
            let set = u64::from(register & 1) << ((1 << bit) - 1);
            register = register << 1 ^ if register >> 7 == 1 { 0x71 } else { 0 };
            round | set
        })
    })
}

/// Number-theoretic transform of small numbers (FIPS 204, algorithm 41), in constant time.
fn transform(polynomial: &mut [i32; N]) {
    let mut k = 0;
    for length in [128, 64, 32, 16, 8, 4, 2, 1] {
        for block in polynomial.chunks_exact_mut(2 * length) {
            k += 1;
            let factor = zeta(k);
            let (low, high) = block.split_at_mut(length);
            for (low, high) in low.iter_mut().zip(high) {
                let product = montgomery(factor, *high);
                (*low, *high) = (*low + product, *low - product);
            }
        }
    }
    for number in polynomial {
        // Below 9 q in magnitude: to at most 3/4 q, and from there to the nearest.
        let reduced = *number - ((*number + (1 << 22)) >> 23) * Q;
        let above = (Q / 2 - reduced) >> 31;
        let below = (reduced + Q / 2) >> 31;
        *number = reduced - (above & Q) + (below & Q);
    }
}

/// a b / 2^32 modulo q.
fn montgomery(a: i32, b: i32) -> i32 {
    let product = i64::from(a) * i64::from(b);
    let factor = (product as i32).wrapping_mul(Q_INVERSE);
    ((product - i64::from(factor) * i64::from(Q)) >> 32) as i32
}

impl fmt::Debug for MlDsaPrivateKey {
    /// Shows the parameter set, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaPrivateKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaDeviceKey {
    /// Shows the parameter set, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaDeviceKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaKeyNumbers<'_> {
    /// Does not show the numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaKeyNumbers").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 202: the first, second and last round constants.
    #[test]
    fn round_constants_are_the_standards() {
        let rounds = keccak_rounds();
        assert_eq!([rounds[0], rounds[1], rounds[23]], [1, 0x8082, 0x8000_0000_8000_8008]);
    }
}
