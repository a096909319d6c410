//! ML-KEM.Encaps of eight clients at once (FIPS 203, algorithms 14, 17 and 20).

use super::compression::compress;
use super::keccak::State;
use super::kernels::Kernels;
use super::matrix::{self, BLOCK, BLOCKS, Entry, Stream};
use super::noise::{add_message, sample_small};
use super::ntt::{N, Pair, Polynomials, reduce};
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::workspace::{KEY_WORDS, RANK, Secrets, Workspace};
use super::{ML_KEM_PUBLIC_KEY_BYTES, PublicKey};

/// Bytes of one of the polynomials of t in a public key.
const T_BYTES: usize = 384;
/// Where the seed begins, in words of 64 bits.
const SEED_WORD: usize = KEY_WORDS - 4;

/// Words of a block of SHA3-256 and SHAKE256, and of SHAKE128.
const RATE_256: usize = 17;
const RATE_128: usize = 21;
/// What follows the message in a block of a hash and of an extendable-output function, and what ends the block.
const PAD_HASH: u64 = 0x06;
const PAD_XOF: u64 = 0x1f;
const PAD_END: u64 = 1 << 63;

/// Encapsulates the workspace's messages for one to eight public keys, and leaves ciphertexts, secrets, and whether the
/// keys are valid in the workspace. The result of an invalid key is meaningless.
#[inline(always)]
pub(crate) fn encapsulate<K: Kernels>(kernels: K, keys: &[&PublicKey], workspace: &mut Workspace<K::Vector>) {
    transpose_keys(keys, &mut workspace.key_words);
    let seeds = derive(kernels, &workspace.key_words, &mut workspace.secrets);
    sample_noise(kernels, keys.len(), &seeds, &mut workspace.secrets);
    kernels.ntt(&mut workspace.secrets.small);
    sample_matrix(kernels, keys, workspace);
    decode_keys::<K::Vector>(keys, workspace);
    multiply(&workspace.columns, &workspace.secrets.small, &mut workspace.secrets.products);
    let Secrets { products, errors, .. } = &mut workspace.secrets;
    kernels.inverse_ntt(products);
    for (product, error) in products.iter_mut().zip(errors) {
        *product = product.plus(*error);
    }
    compress(products, &mut workspace.ciphertexts);
}

/// The keys' words of 64 bits, one key in each lane. Lanes without a client get the first client's key.
#[inline(always)]
fn transpose_keys<V: Vector>(keys: &[&PublicKey], words: &mut [V; KEY_WORDS]) {
    // The last vector overlaps the one before.
    let starts = (0..ML_KEM_PUBLIC_KEY_BYTES - VECTOR_BYTES).step_by(VECTOR_BYTES);
    for start in starts.chain([ML_KEM_PUBLIC_KEY_BYTES - VECTOR_BYTES]) {
        let mut rows = [V::zero(); LANES];
        for (lane, row) in rows.iter_mut().enumerate() {
            let key = keys.get(lane).unwrap_or(&keys[0]);
            *row = V::load(key[start..].first_chunk().expect("a vector is left"));
        }
        words[start / 8..][..8].copy_from_slice(&V::transpose_lanes(rows));
    }
}

/// (K, r) = G(m || H(ek)): returns r, and leaves K in place of m.
#[inline(always)]
fn derive<K: Kernels>(
    kernels: K,
    key: &[K::Vector; KEY_WORDS],
    secrets: &mut Secrets<K::Vector>,
) -> [K::Vector; 4] {
    let (zero, end) = (K::Vector::zero(), K::Vector::lanes(PAD_END));
    let state = &mut secrets.states[0];
    *state = [zero; 25];
    let mut blocks = key.chunks_exact(RATE_256);
    for block in &mut blocks {
        absorb(state, block);
        kernels.keccak(state);
    }
    let rest = blocks.remainder();
    absorb(state, rest);
    state[rest.len()] = state[rest.len()].xor(K::Vector::lanes(PAD_HASH));
    state[RATE_256 - 1] = state[RATE_256 - 1].xor(end);
    kernels.keccak(state);

    secrets.message = transpose_messages(&secrets.messages);
    state.copy_within(..4, 4);
    state[..4].copy_from_slice(&secrets.message);
    state[8] = K::Vector::lanes(PAD_HASH | PAD_END);
    state[9..].fill(zero);
    kernels.keccak(state);
    write_messages(&[state[0], state[1], state[2], state[3]], &mut secrets.messages);
    [state[4], state[5], state[6], state[7]]
}

#[inline(always)]
fn absorb<V: Vector>(state: &mut State<V>, block: &[V]) {
    for (word, more) in state.iter_mut().zip(block) {
        *word = word.xor(*more);
    }
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

/// y, e1 and e2 from r, with the message added to e2. Polynomial n comes from PRF(r, n), the last one, e2, from n = 6.
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
        // The upper lanes compute what the lower ones need four nonces later.
        let [a, b, c, d] = seeds;
        let seeds = [a.repeat_lower(), b.repeat_lower(), c.repeat_lower(), d.repeat_lower()];
        for (n, state) in (0..).zip(&mut *states) {
            prf(kernels, &seeds, [n, n + 4], state);
        }
        let third = std::mem::replace(&mut states[3], [K::Vector::zero(); 25]);
        sample_small(states, small);
        // As far as it is sampled, in place of the ones before.
        for n in (1..4).rev() {
            for w in 0..RATE_256 {
                states[n][w] = states[n - 1][w].repeat_upper();
            }
        }
        states[0] = third;
        sample_small(states, errors);
    }
    add_message(message, errors);
}

/// A block of SHAKE256 of r and a nonce, which may be another one in the upper four lanes.
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

/// Every entry of A from SHAKE128, eight at a time, whichever clients' they are.
#[inline(always)]
fn sample_matrix<K: Kernels>(kernels: K, keys: &[&PublicKey], workspace: &mut Workspace<K::Vector>) {
    let Workspace { columns, streams, .. } = workspace;
    let entries = RANK * RANK * keys.len();
    for first in (0..entries).step_by(LANES) {
        // Entry (j, i) of A is in word i of the client's lane, in column j. Lanes at the end repeat the last entry.
        let place = |lane: usize| {
            let n = (first + lane).min(entries - 1);
            (n / RANK % keys.len(), n / RANK / keys.len(), n % RANK)
        };
        let mut state = [K::Vector::zero(); 25];
        for (w, word) in state[..4].iter_mut().enumerate() {
            *word = from_lanes(|lane| word_of(keys[place(lane).0], SEED_WORD + w));
        }
        state[4] = from_lanes(|lane| {
            let (_, j, i) = place(lane);
            i as u64 | (j as u64) << 8 | PAD_XOF << 16
        });
        state[RATE_128 - 1] = K::Vector::lanes(PAD_END);
        for block in 0..BLOCKS / BLOCK {
            kernels.keccak(&mut state);
            write_block(&state, BLOCK * block, streams);
        }
        let used = LANES.min(entries - first);
        let mut complete = true;
        for (lane, stream) in streams[..used].iter().enumerate() {
            let (client, j, i) = place(lane);
            let entry = &mut columns[j][4 * client + i];
            entry.clear();
            kernels.sample(stream, BLOCKS, entry);
            complete &= entry.is_complete();
        }
        while !complete {
            kernels.keccak(&mut state);
            write_block(&state, 0, streams);
            complete = true;
            for (lane, stream) in streams[..used].iter().enumerate() {
                let (client, j, i) = place(lane);
                let entry = &mut columns[j][4 * client + i];
                if !entry.is_complete() {
                    kernels.sample(stream, BLOCK, entry);
                    complete &= entry.is_complete();
                }
            }
        }
    }
}

/// Writes the lanes' blocks of SHAKE128 into their streams, and some bytes behind them.
#[inline(always)]
fn write_block<V: Vector>(state: &State<V>, at: usize, streams: &mut [Stream; LANES]) {
    for (i, rows) in state[..24].as_chunks().0.iter().enumerate() {
        for (row, stream) in V::transpose_lanes(*rows).into_iter().zip(&mut *streams) {
            row.store(stream[at + VECTOR_BYTES * i..].first_chunk_mut().expect("room for a vector"));
        }
    }
}

#[inline(always)]
fn decode_keys<V: Vector>(keys: &[&PublicKey], workspace: &mut Workspace<V>) {
    let Workspace { columns, valid, .. } = workspace;
    for (client, (key, valid)) in keys.iter().zip(valid).enumerate() {
        *valid = true;
        for (j, column) in columns.iter_mut().enumerate() {
            *valid &= matrix::decode::<V>(&key[T_BYTES * j..], &mut column[4 * client + RANK]);
        }
    }
}

/// The transforms of u and v without their errors, divided by R: in the words of a lane, the three columns of A and t,
/// each multiplied by y.
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

/// 32 coefficients of 32 polynomials, each in its word.
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

#[inline(always)]
fn from_lanes<V: Vector>(lane: impl Fn(usize) -> u64) -> V {
    let mut bytes = [0; VECTOR_BYTES];
    for (i, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = lane(i).to_le_bytes();
    }
    V::load(&bytes)
}

#[inline(always)]
fn word_of(key: &PublicKey, word: usize) -> u64 {
    u64::from_le_bytes(key.as_chunks().0[word])
}
