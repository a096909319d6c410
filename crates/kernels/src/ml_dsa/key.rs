//! Keys, with the values that every operation uses: A and t1 transformed, s1, s2, and t0 transformed.

use super::challenge::Small;
use super::expand::{expand_matrix, expand_small};
use super::kernels::Kernels;
use super::ntt::Matrix;
use super::packing::{pack, unpack};
use super::parameters::MlDsa;
use super::polynomial::{Polynomial, Q};
use super::shake::{Digest, NO_DIGEST, shake256};
use super::sponge::State;
use super::workspace::wipe;
use std::fmt;
use zeroize::{Zeroize, Zeroizing};

/// Bits that t1 lacks (FIPS 204, table 1).
const D: usize = 13;
/// Bits of a coefficient of t1.
const T1_BITS: usize = 10;

/// Public key of ML-DSA, with its matrix. It takes 22 KiB of memory (ML-DSA-44), 39 (ML-DSA-65) or 67 (ML-DSA-87).
pub struct MlDsaPublicKey {
    pub(super) set: MlDsa,
    encoded: Vec<u8>,
    /// A, and -t1 2^13 to the right of it, transformed.
    pub(super) matrix: Matrix,
    /// H(encoded key)
    pub(super) tr: [u8; 64],
}

/// Private key of ML-DSA, with the values that every signature uses. It takes 32 KiB of memory (ML-DSA-44), 53
/// (ML-DSA-65) or 87 (ML-DSA-87), in which its secrets are cleared in the end.
pub struct MlDsaKey {
    pub(super) public: MlDsaPublicKey,
    pub(super) secrets: Secrets,
}

/// Secrets of a key.
pub(super) struct Secrets {
    /// K, for the seeds of masks.
    pub(super) seed: [u8; 32],
    pub(super) s1: Vec<Small>,
    /// -s2
    pub(super) minus_s2: Vec<Small>,
    /// t0, transformed.
    pub(super) t0: Vec<Polynomial>,
}

impl MlDsaPublicKey {
    /// Parses an encoded key; `None` if its length is not the parameter set's.
    pub(crate) fn parse<K: Kernels>(kernels: K, set: MlDsa, encoded: &[u8]) -> Option<Self> {
        let seed = encoded.first_chunk().filter(|_| encoded.len() == set.public_key_bytes())?;
        let matrix = expand_matrix(kernels, set.parameters(), seed);
        Some(Self::new(kernels, set, matrix, encoded.to_vec()))
    }

    fn new<K: Kernels>(kernels: K, set: MlDsa, mut matrix: Matrix, encoded: Vec<u8>) -> Self {
        let parameters = set.parameters();
        for (row, bytes) in encoded[32..].chunks_exact(32 * T1_BITS).enumerate() {
            let mut t1 = Polynomial::ZERO;
            for (to, number) in t1.coefficients_mut().zip(unpack(T1_BITS, bytes)) {
                *to = -(number as i32) << D;
            }
            kernels.ntt(&mut t1);
            t1.centre();
            matrix.set(row, parameters.l, &t1);
        }
        let mut tr = [0; 64];
        hash(kernels, &encoded, &mut tr);
        Self { set, encoded, matrix, tr }
    }

    /// Parameter set of the key.
    pub fn parameter_set(&self) -> MlDsa {
        self.set
    }

    /// Encoded key (FIPS 204, algorithm 22).
    pub fn encoded(&self) -> &[u8] {
        &self.encoded
    }
}

impl MlDsaKey {
    /// Generates a key from its seed (FIPS 204, algorithm 6).
    pub(crate) fn from_seed<K: Kernels>(kernels: K, set: MlDsa, seed: &[u8; 32]) -> Self {
        let parameters = set.parameters();
        let mut message = Zeroizing::new([0; 34]);
        message[..32].copy_from_slice(seed);
        message[32..].copy_from_slice(&[parameters.k as u8, parameters.l as u8]);
        let mut seeds = Zeroizing::new([0; 128]);
        hash(kernels, &*message, &mut *seeds);
        let (of_matrix, rest) = seeds.split_first_chunk().expect("128 bytes");
        let (of_small, of_masks) = rest.split_first_chunk().expect("96 bytes");
        let mut small = expand_small(kernels, parameters, of_small);
        let of_masks = of_masks.try_into().expect("32 bytes");
        let (key, mut t0) = Self::new(kernels, set, of_matrix, of_masks, &small);
        wipe(&mut small, Polynomial::ZERO);
        wipe(&mut t0, Polynomial::ZERO);
        key
    }

    /// Parses an encoded private key (FIPS 204, algorithm 25); `None` if it is invalid, or its parts contradict each
    /// other.
    pub(crate) fn from_expanded<K: Kernels>(kernels: K, set: MlDsa, encoded: &[u8]) -> Option<Self> {
        let parameters = set.parameters();
        (encoded.len() == set.private_key_bytes()).then_some(())?;
        let (of_matrix, rest) = encoded.split_first_chunk()?;
        let (of_masks, rest) = rest.split_first_chunk()?;
        let (tr, rest) = rest.split_at(64);
        let bits = parameters.small_bits();
        let (small, t0) = rest.split_at(32 * bits * (parameters.k + parameters.l));
        let mut small = decode(bits, parameters.eta, small);
        let mut stored_t0 = decode(D, 1 << (D - 1), t0);
        let coefficients = small.iter().flat_map(Polynomial::coefficients);
        let out_of_range = coefficients.fold(0, |any, x| any | (x + parameters.eta) >> 31) != 0;
        let key = (!out_of_range).then(|| Self::new(kernels, set, of_matrix, of_masks, &small));
        wipe(&mut small, Polynomial::ZERO);
        let (key, mut t0) = key?;
        let differences = t0.iter().zip(&stored_t0).fold(0, |all, (a, b)| all | kernels.differences(a, b));
        let consistent = differences == 0 && key.public.tr == tr;
        wipe(&mut stored_t0, Polynomial::ZERO);
        wipe(&mut t0, Polynomial::ZERO);
        consistent.then_some(key)
    }

    /// Computes t = A s1 + s2, and returns the key and t0.
    fn new<K: Kernels>(
        kernels: K,
        set: MlDsa,
        seed_of_matrix: &[u8; 32],
        seed_of_masks: &[u8; 32],
        small: &[Polynomial],
    ) -> (Self, Vec<Polynomial>) {
        let parameters = set.parameters();
        let matrix = expand_matrix(kernels, parameters, seed_of_matrix);
        let (s1, s2) = small.split_at(parameters.l);
        let mut transformed = s1.to_vec();
        transformed.iter_mut().for_each(|s1| kernels.ntt(s1));
        let mut t = vec![Polynomial::ZERO; parameters.k];
        kernels.multiply_matrix(&matrix, &transformed, &mut t);
        wipe(&mut transformed, Polynomial::ZERO);
        let mut encoded = vec![0; set.public_key_bytes()];
        encoded[..32].copy_from_slice(seed_of_matrix);
        for ((t, s2), bytes) in t.iter_mut().zip(s2).zip(encoded[32..].chunks_exact_mut(32 * T1_BITS)) {
            kernels.inverse_ntt(t);
            kernels.add(t, s2);
            t.centre();
            t.make_canonical();
            split(t, bytes);
        }
        let t0 = t;
        let secrets = Secrets::new(kernels, seed_of_masks, s1, s2, &t0);
        (Self { public: MlDsaPublicKey::new(kernels, set, matrix, encoded), secrets }, t0)
    }

    /// Bytes of memory.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        let Secrets { s1, minus_s2, t0, .. } = &self.secrets;
        let small = size_of_val(s1.as_slice()) + size_of_val(minus_s2.as_slice());
        size_of::<Self>()
            + self.public.encoded.len()
            + self.public.matrix.bytes()
            + small
            + size_of_val(t0.as_slice())
    }

    /// Marks the secrets as undefined for memcheck.
    #[cfg(all(test, target_arch = "x86_64"))]
    pub(super) fn hide(&mut self) {
        use crate::secrecy::hide;
        hide(&mut self.secrets.seed);
        hide(self.secrets.s1.as_mut_slice());
        hide(self.secrets.minus_s2.as_mut_slice());
        hide(self.secrets.t0.as_mut_slice());
    }

    /// Public key.
    pub fn public_key(&self) -> &MlDsaPublicKey {
        &self.public
    }
}

impl Secrets {
    fn new<K: Kernels>(
        kernels: K,
        seed: &[u8; 32],
        s1: &[Polynomial],
        s2: &[Polynomial],
        t0: &[Polynomial],
    ) -> Self {
        let mut t0 = t0.to_vec();
        for t0 in &mut t0 {
            kernels.ntt(t0);
            t0.centre();
        }
        let minus_s2 = s2.iter().map(|s2| {
            let mut minus = *s2;
            minus.coefficients_mut().for_each(|x| *x = -*x);
            let small = Small::new(&minus);
            wipe(std::slice::from_mut(&mut minus), Polynomial::ZERO);
            small
        });
        Self { seed: *seed, s1: s1.iter().map(Small::new).collect(), minus_s2: minus_s2.collect(), t0 }
    }
}

/// Packs the high parts of t, from 0 to q - 1, and keeps the low parts (FIPS 204, algorithm 35).
fn split(t: &mut Polynomial, bytes: &mut [u8]) {
    let high = |t: i32| (t + (1 << (D - 1)) - 1) >> D;
    debug_assert!(high(Q - 1) < 1 << T1_BITS);
    pack(T1_BITS, t.coefficients().map(|t| high(t) as u32), bytes);
    t.coefficients_mut().for_each(|t| *t -= high(*t) << D);
}

/// Decodes polynomials of numbers below `bound` or equal to it, of the given bits.
fn decode(bits: usize, bound: i32, bytes: &[u8]) -> Vec<Polynomial> {
    let decode = |bytes| {
        let mut polynomial = Polynomial::ZERO;
        for (to, number) in polynomial.coefficients_mut().zip(unpack(bits, bytes)) {
            *to = bound - number as i32;
        }
        polynomial
    };
    bytes.chunks_exact(32 * bits).map(decode).collect()
}

/// Computes SHAKE256 of one message.
fn hash<K: Kernels>(kernels: K, message: &[u8], output: &mut [u8]) {
    let (mut states, mut digest): (_, [Digest; 1]) = (State::ZERO, [NO_DIGEST]);
    shake256(kernels, &mut states, &[message], &mut digest);
    output.copy_from_slice(&digest[0][..output.len()]);
    digest.as_flattened_mut().zeroize();
    states.0.as_flattened_mut().zeroize();
}

impl Drop for Secrets {
    fn drop(&mut self) {
        self.seed.zeroize();
        wipe(&mut self.s1, Small::ZERO);
        wipe(&mut self.minus_s2, Small::ZERO);
        wipe(&mut self.t0, Polynomial::ZERO);
    }
}

impl fmt::Debug for MlDsaPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaPublicKey").field("set", &self.set).finish_non_exhaustive()
    }
}

impl fmt::Debug for MlDsaKey {
    /// Shows the parameter set, but not the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MlDsaKey").field("set", &self.public.set).finish_non_exhaustive()
    }
}
