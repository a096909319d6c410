//! ML-KEM.Encaps for one client (FIPS 203, algorithms 14, 17 and 20), with all lanes at work on it.
//!
//! Keccak has an entry of A, a hash or a nonce in each lane. A polynomial is eight vectors, in the order of its
//! coefficients: data moves within vectors, where a batch moves none, but little else of a vector is idle.

use super::compression::{canonical, compress_4, compress_10};
use super::keccak::{PAD_END, PAD_HASH, PAD_XOF, RATE_256, from_lanes};
use super::kernels::Kernels;
use super::matrix::Entry;
use super::noise::differences;
use super::ntt::{Q, reduce};
use super::polynomial::{Factor, Polynomial, VECTORS, inverse_ntt, ntt};
use super::public::expand_keys;
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::workspace::{LoneSecrets, RANK, RESULTS, Workspace};
use super::{ML_KEM_CIPHERTEXT_BYTES, PublicKey};
use crate::keccak::StateWords;

/// Encapsulates the workspace's lone message, and leaves ciphertext, secret and the validity of the key in the first
/// places of the workspace. The result of an invalid key is meaningless.
#[inline(always)]
pub(crate) fn encapsulate_lone<K: Kernels>(
    kernels: K,
    key: &PublicKey,
    workspace: &mut Workspace<K::Vector>,
) {
    let hash = expand_keys(kernels, &[key], workspace).map(first_lane);
    let Workspace { lone, columns, ciphertexts, .. } = workspace;
    let message = words_of(&lone.message);
    let seed = derive(kernels, &hash, lone);
    sample_noise(kernels, &seed, &message, lone);
    let products = multiply(columns, lone);
    compress(products, &lone.errors, &mut ciphertexts[0]);
}

#[inline(always)]
fn first_lane<V: Vector>(vector: V) -> u64 {
    let mut bytes = [0; VECTOR_BYTES];
    vector.store(&mut bytes);
    u64::from_le_bytes(bytes.as_chunks().0[0])
}

fn words_of(bytes: &[u8; 32]) -> [u64; 4] {
    std::array::from_fn(|i| u64::from_le_bytes(bytes.as_chunks().0[i]))
}

/// Computes (K, r) = G(m || H(ek)): returns r, and leaves K in place of m.
#[inline(always)]
fn derive<K: Kernels>(kernels: K, hash: &[u64; 4], lone: &mut LoneSecrets<K::Vector>) -> [u64; 4] {
    let LoneSecrets { message, state, .. } = lone;
    *state = [K::Vector::zero(); 25];
    for (word, input) in state.iter_mut().zip(words_of(message).iter().chain(hash)) {
        *word = K::Vector::lanes(*input);
    }
    state[8] = K::Vector::lanes(PAD_HASH | PAD_END);
    kernels.keccak(state);
    for (word, to) in state.iter().zip(message.as_chunks_mut().0) {
        *to = first_lane(*word).to_le_bytes();
    }
    [state[4], state[5], state[6], state[7]].map(first_lane)
}

/// Computes y, e1 and e2 from r, with the message added to e2. Lane n computes PRF(r, n), which yields polynomial n;
/// the last one, e2, is that of lane 6.
#[inline(always)]
fn sample_noise<K: Kernels>(
    kernels: K,
    seed: &[u64; 4],
    message: &[u64; 4],
    lone: &mut LoneSecrets<K::Vector>,
) {
    let LoneSecrets { state, small, errors, .. } = lone;
    *state = [K::Vector::zero(); 25];
    for (word, seed) in state.iter_mut().zip(seed) {
        *word = K::Vector::lanes(*seed);
    }
    state[4] = from_lanes(|lane| lane as u64 | PAD_XOF << 8);
    state[RATE_256 - 1] = K::Vector::lanes(PAD_END);
    kernels.keccak(state);
    for (half, words) in state[..16].as_chunks::<LANES>().0.iter().enumerate() {
        let bits = K::Vector::transpose_lanes(words.map(differences));
        for (polynomial, bits) in small.iter_mut().chain(errors.iter_mut()).zip(bits) {
            let to = &mut polynomial[VECTORS / 2 * half..][..VECTORS / 2];
            for (i, to) in to.iter_mut().enumerate() {
                *to = bits.four_bits(i).minus(K::Vector::words(4));
            }
        }
    }
    add_message(message, &mut errors[RANK]);
}

/// Adds Decompress_1 of the message (FIPS 203, algorithm 14, line 20).
#[inline(always)]
fn add_message<V: Vector>(message: &[u64; 4], to: &mut Polynomial<V>) {
    let half = V::words(Q / 2 + 1);
    for (word, to) in message.iter().zip(to.as_chunks_mut::<2>().0) {
        to[0] = to[0].plus(V::from_bits(*word as u32).and(half));
        to[1] = to[1].plus(V::from_bits((*word >> 32) as u32).and(half));
    }
}

/// Computes u and v without their errors: A transposed, and t, multiplied by y.
#[inline(always)]
fn multiply<V: Vector>(
    columns: &[[Entry; 4 * LANES]; RANK],
    lone: &mut LoneSecrets<V>,
) -> [Polynomial<V>; RESULTS] {
    for (factor, y) in lone.factors.iter_mut().zip(&mut lone.small) {
        ntt(y);
        *factor = Factor::new(y);
    }
    let mut products = [[V::zero(); VECTORS]; RESULTS];
    for (row, product) in products.iter_mut().enumerate() {
        for (block, product) in product.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let mut sum = [V::zero(); 2];
            for (column, factor) in columns.iter().zip(&lone.factors) {
                let entry = &column[row];
                let [even, odd] = factor.times(block, [entry.vector(2 * block), entry.vector(2 * block + 1)]);
                sum = [sum[0].plus(even), sum[1].plus(odd)];
            }
            *product = reduce(sum[0]).interleave::<1>(reduce(sum[1]));
        }
        inverse_ntt(product);
    }
    products
}

/// Adds the errors, and writes Compress_10 of u and Compress_4 of v. Coefficients are below q in absolute value before.
#[inline(always)]
fn compress<V: Vector>(
    products: [Polynomial<V>; RESULTS],
    errors: &[Polynomial<V>; RESULTS],
    ciphertext: &mut [u8; ML_KEM_CIPHERTEXT_BYTES],
) {
    let sums = products.into_iter().zip(errors).flat_map(|(product, error)| product.into_iter().zip(error));
    let mut rest = ciphertext.as_mut_slice();
    for (i, (product, error)) in sums.enumerate() {
        let sum = canonical(product.plus(*error));
        let (packed, len) = if i < RANK * VECTORS {
            (compress_10(sum).pack::<10>(), 4 * 10)
        } else {
            (compress_4(sum).pack::<4>(), 4 * 4)
        };
        let mut bytes = [0; VECTOR_BYTES];
        packed.store(&mut bytes);
        let (to, after) = rest.split_at_mut(len);
        to.copy_from_slice(&bytes[..len]);
        rest = after;
    }
}
