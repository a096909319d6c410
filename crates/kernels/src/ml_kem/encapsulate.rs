//! ML-KEM.Encaps for eight clients at once (FIPS 203, algorithms 14, 17 and 20).

use super::PublicKey;
use super::compression::compress;
use super::keccak::{PAD_END, PAD_HASH, PAD_XOF, RATE_256, State, from_lanes};
use super::kernels::Kernels;
use super::matrix::Entry;
use super::noise::{add_message, sample_small};
use super::ntt::{N, Pair, Polynomials, reduce};
use super::public::expand_keys;
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::workspace::{RANK, Secrets, Workspace};
use crate::keccak::StateWords;

/// Encapsulates the workspace's messages for one to eight public keys, and leaves ciphertexts, secrets, and the
/// validity of the keys in the workspace. The result of an invalid key is meaningless.
#[inline(always)]
pub(crate) fn encapsulate<K: Kernels>(kernels: K, keys: &[&PublicKey], workspace: &mut Workspace<K::Vector>) {
    let hashes = expand_keys(kernels, keys, workspace);
    let seeds = derive(kernels, &hashes, &mut workspace.secrets);
    sample_noise(kernels, keys.len(), &seeds, &mut workspace.secrets);
    kernels.ntt(&mut workspace.secrets.small);
    multiply(&workspace.columns, &workspace.secrets.small, &mut workspace.secrets.products);
    let Secrets { products, errors, .. } = &mut workspace.secrets;
    kernels.inverse_ntt(products);
    for (product, error) in products.iter_mut().zip(errors) {
        *product = product.plus(*error);
    }
    compress(products, &mut workspace.ciphertexts);
}

/// Computes (K, r) = G(m
/// H(ek)): returns r, and leaves K in place of m.
#[inline(always)]
fn derive<K: Kernels>(
    kernels: K,
    hashes: &[K::Vector; 4],
    secrets: &mut Secrets<K::Vector>,
) -> [K::Vector; 4] {
    secrets.message = transpose_messages(&secrets.messages);
    let state = &mut secrets.states[0];
    *state = [K::Vector::zero(); 25];
    state[..4].copy_from_slice(&secrets.message);
    state[4..8].copy_from_slice(hashes);
    state[8] = K::Vector::lanes(PAD_HASH | PAD_END);
    kernels.keccak(state);
    write_messages(&[state[0], state[1], state[2], state[3]], &mut secrets.messages);
    [state[4], state[5], state[6], state[7]]
}

#[inline(always)]
fn transpose_messages<V: Vector>(messages: &[[u8; 32]; LANES]) -> [V; 4] {
    let mut rows = [V::zero(); LANES];
    for (row, message) in rows.iter_mut().zip(messages) {
        let mut bytes = [0; VECTOR_BYTES];
        bytes[..32].copy_from_slice(message);
        *row = V::load(&bytes);
    }
    let [a, b, c, d, ..] = V::transpose_lanes(rows);
    [a, b, c, d]
}

#[inline(always)]
fn write_messages<V: Vector>(words: &[V; 4], messages: &mut [[u8; 32]; LANES]) {
    let mut rows = [V::zero(); 8];
    rows[..4].copy_from_slice(words);
    for (row, message) in V::transpose_lanes(rows).into_iter().zip(messages) {
        let mut bytes = [0; VECTOR_BYTES];
        row.store(&mut bytes);
        message.copy_from_slice(&bytes[..32]);
    }
}

/// Computes y, e1 and e2 from r, with the message added to e2. Polynomial n comes from PRF(r, n), the last one, e2,
/// from n = 6.
#[inline(always)]
fn sample_noise<K: Kernels>(
    kernels: K,
    lanes: usize,
    seeds: &[K::Vector; 4],
    secrets: &mut Secrets<K::Vector>,
) {
    let Secrets { states, small, errors, message, .. } = secrets;
    if lanes > LANES / 2 {
        for (n, state) in (0..3).zip(&mut *states) {
            prf(kernels, seeds, [n; 2], state);
        }
        states[3] = [K::Vector::zero(); 25];
        sample_small(states, small);
        for (n, state) in (3..).zip(&mut *states) {
            prf(kernels, seeds, [n; 2], state);
        }
        sample_small(states, errors);
    } else {
        // The upper lanes compute the values that the lower ones need four nonces later.
        let [a, b, c, d] = seeds;
        let seeds = [a.repeat_lower(), b.repeat_lower(), c.repeat_lower(), d.repeat_lower()];
        for (n, state) in (0..).zip(&mut *states) {
            prf(kernels, &seeds, [n, n + 4], state);
        }
        let e1 = std::mem::replace(&mut states[3], [K::Vector::zero(); 25]);
        sample_small(states, small);
        let [a, b, c, d] = states;
        copy_upper(c, d);
        copy_upper(b, c);
        copy_upper(a, b);
        *a = e1;
        sample_small(states, errors);
    }
    add_message(message, errors);
}

/// Copies the upper four lanes to the lower ones.
#[inline(always)]
fn copy_upper<V: Vector>(from: &State<V>, to: &mut State<V>) {
    for (from, to) in from.iter().zip(to) {
        *to = from.repeat_upper();
    }
}

/// Computes a block of SHAKE256 of r and a nonce, which may differ in the upper four lanes.
#[inline(always)]
fn prf<K: Kernels>(
    kernels: K,
    seeds: &[K::Vector; 4],
    [lower, upper]: [u64; 2],
    state: &mut State<K::Vector>,
) {
    let nonces = from_lanes::<K::Vector>(|lane| if lane < LANES / 2 { lower } else { upper });
    *state = [K::Vector::zero(); 25];
    state[..4].copy_from_slice(seeds);
    state[4] = nonces.xor(K::Vector::lanes(PAD_XOF << 8));
    state[RATE_256 - 1] = K::Vector::lanes(PAD_END);
    kernels.keccak(state);
}

/// Computes the transforms of u and v without their errors, divided by R: in the words of a lane, the three columns
/// of A and t, each multiplied by y.
#[inline(always)]
fn multiply<V: Vector>(
    columns: &[[Entry; 4 * LANES]; RANK],
    small: &Polynomials<V>,
    products: &mut Polynomials<V>,
) {
    for block in 0..N / 32 {
        let [first, second, third] = columns;
        let first = transpose_entries::<V>(first, block);
        let second = transpose_entries::<V>(second, block);
        let third = transpose_entries::<V>(third, block);
        for i in 0..16 {
            let [even, odd] = [32 * block + 2 * i, 32 * block + 2 * i + 1];
            let y = Pair::new(small[even], small[odd], 16 * block + i);
            let [a, b, c] = [
                y.broadcast::<0>().times(first[2 * i], first[2 * i + 1]),
                y.broadcast::<1>().times(second[2 * i], second[2 * i + 1]),
                y.broadcast::<2>().times(third[2 * i], third[2 * i + 1]),
            ];
            products[even] = reduce(a[0].plus(b[0]).plus(c[0]));
            products[odd] = reduce(a[1].plus(b[1]).plus(c[1]));
        }
    }
}

/// Returns 32 coefficients of 32 polynomials, each in its word.
#[inline(always)]
fn transpose_entries<V: Vector>(entries: &[Entry; 4 * LANES], block: usize) -> [V; 32] {
    let mut lanes = [[V::zero(); LANES]; 4];
    for (i, lanes) in lanes.iter_mut().enumerate() {
        for (lane, row) in lanes.iter_mut().enumerate() {
            *row = entries[4 * lane + i].vector(block);
        }
        *lanes = V::transpose_lanes(*lanes);
    }
    let [a, b, c, d] = lanes;
    let mut columns = [V::zero(); 32];
    for (m, columns) in columns.as_chunks_mut().0.iter_mut().enumerate() {
        *columns = V::transpose_words([a[m], b[m], c[m], d[m]]);
    }
    columns
}
