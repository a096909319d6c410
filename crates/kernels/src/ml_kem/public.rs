//! Values that depend on the public keys alone: H(ek), A, t, and the validity of the keys.
//!
//! All data in this module is public.

use super::keccak::{PAD_END, PAD_HASH, PAD_XOF, RATE_128, RATE_256, State, absorb, from_lanes};
use super::kernels::Kernels;
use super::matrix::{self, BLOCK, BLOCKS, Stream};
use super::vector::{LANES, VECTOR_BYTES, Vector};
use super::workspace::{KEY_WORDS, RANK, Workspace};
use super::{ML_KEM_PUBLIC_KEY_BYTES, PublicKey};
use crate::keccak::StateWords;

/// Length in bytes of one of the polynomials of t in a public key.
const T_BYTES: usize = 384;
/// Offset of the seed of A, in words of 64 bits.
const SEED_WORD: usize = KEY_WORDS - 4;
/// Number of permutations for an entry of A, nearly always.
const ENTRY: usize = BLOCKS / BLOCK;

/// Stores A, t and the validity of the keys in the workspace, and returns H of each.
///
/// The hash takes nine permutations, in which the lanes without a client sample three entries of A each.
#[inline(always)]
pub(super) fn expand_keys<K: Kernels>(
    kernels: K,
    keys: &[&PublicKey],
    workspace: &mut Workspace<K::Vector>,
) -> [K::Vector; 4] {
    decode_keys::<K::Vector>(keys, workspace);
    transpose_keys(keys, &mut workspace.key_words);
    let mut wanted = Wanted::new(keys.len());
    let clients = from_lanes::<K::Vector>(|lane| if lane < keys.len() { u64::MAX } else { 0 });
    let mut state = [K::Vector::zero(); 25];
    let mut lanes = [None; LANES];
    for i in 0..KEY_WORDS.div_ceil(RATE_256) {
        if i % ENTRY == 0 {
            lanes = wanted.take(LANES - keys.len());
            begin(&mut state, clients, keys, &lanes);
        }
        let block = &workspace.key_words[RATE_256 * i..KEY_WORDS.min(RATE_256 * (i + 1))];
        absorb(&mut state, block);
        if block.len() < RATE_256 {
            state[block.len()] = state[block.len()].xor(clients.and(K::Vector::lanes(PAD_HASH)));
            state[RATE_256 - 1] = state[RATE_256 - 1].xor(clients.and(K::Vector::lanes(PAD_END)));
        }
        kernels.keccak(&mut state);
        if keys.len() < LANES {
            write_block(&state, BLOCK * (i % ENTRY), &mut workspace.streams);
        }
        if i % ENTRY == ENTRY - 1 {
            wanted.put_back(sample(kernels, &lanes, BLOCKS, workspace));
        }
    }
    let hashes = [state[0], state[1], state[2], state[3]];
    while !wanted.is_empty() {
        sample_lanes(kernels, keys, wanted.take(LANES), workspace);
    }
    hashes
}

/// Samples entries of A, one in each lane, until all of them are complete.
#[inline(always)]
fn sample_lanes<K: Kernels>(
    kernels: K,
    keys: &[&PublicKey],
    lanes: Lanes,
    workspace: &mut Workspace<K::Vector>,
) {
    let mut state = [K::Vector::zero(); 25];
    begin(&mut state, K::Vector::zero(), keys, &lanes);
    for block in 0..ENTRY {
        kernels.keccak(&mut state);
        write_block(&state, BLOCK * block, &mut workspace.streams);
    }
    let mut incomplete = sample(kernels, &lanes, BLOCKS, workspace);
    while incomplete.iter().any(Option::is_some) {
        kernels.keccak(&mut state);
        write_block(&state, 0, &mut workspace.streams);
        incomplete = sample(kernels, &incomplete, BLOCK, workspace);
    }
}

/// Position of an entry of A: client, column and row.
#[derive(Clone, Copy)]
struct Place {
    client: usize,
    column: usize,
    row: usize,
}

/// Entry sampled by each lane.
type Lanes = [Option<Place>; LANES];

/// Entries to sample: a count of remaining entries, taken in descending order, and the incomplete ones.
struct Wanted {
    clients: usize,
    left: usize,
    incomplete: Vec<Place>,
}

impl Wanted {
    fn new(clients: usize) -> Self {
        Self { clients, left: RANK * RANK * clients, incomplete: Vec::new() }
    }

    fn is_empty(&self) -> bool {
        self.left == 0 && self.incomplete.is_empty()
    }

    /// Takes up to `count` entries for the last lanes.
    fn take(&mut self, count: usize) -> Lanes {
        let mut lanes = [None; LANES];
        for lane in &mut lanes[LANES - count..] {
            *lane = self.incomplete.pop().or_else(|| self.next());
        }
        lanes
    }

    fn next(&mut self) -> Option<Place> {
        self.left = self.left.checked_sub(1)?;
        let (n, row) = (self.left / RANK, self.left % RANK);
        Some(Place { client: n % self.clients, column: n / self.clients, row })
    }

    fn put_back(&mut self, lanes: Lanes) {
        self.incomplete.extend(lanes.into_iter().flatten());
    }
}

/// Sets the lanes to SHAKE128's first block of an entry's seed, or to zeros without an entry, except the lanes with
/// ones in `kept`.
#[inline(always)]
fn begin<V: Vector>(state: &mut State<V>, kept: V, keys: &[&PublicKey], lanes: &Lanes) {
    for word in state.iter_mut() {
        *word = word.and(kept);
    }
    let of = |lane: usize, word: &dyn Fn(Place) -> u64| lanes[lane].map_or(0, word);
    for (w, word) in state[..4].iter_mut().enumerate() {
        *word = word.or(from_lanes(|lane| of(lane, &|place| word_of(keys[place.client], SEED_WORD + w))));
    }
    let indices = |place: Place| place.row as u64 | (place.column as u64) << 8 | PAD_XOF << 16;
    state[4] = state[4].or(from_lanes(|lane| of(lane, &indices)));
    state[RATE_128 - 1] = state[RATE_128 - 1].or(from_lanes(|lane| of(lane, &|_| PAD_END)));
}

/// Samples from the first `len` bytes of the lanes' streams: three blocks, or one more. Returns the incomplete
/// entries.
#[inline(always)]
fn sample<K: Kernels>(kernels: K, lanes: &Lanes, len: usize, workspace: &mut Workspace<K::Vector>) -> Lanes {
    let mut incomplete = [None; LANES];
    for (lane, place) in lanes.iter().enumerate() {
        let Some(Place { client, column, row }) = *place else { continue };
        let entry = &mut workspace.columns[column][4 * client + row];
        if len == BLOCKS {
            entry.clear();
        }
        kernels.sample(&workspace.streams[lane], len, entry);
        if !entry.is_complete() {
            incomplete[lane] = *place;
        }
    }
    incomplete
}

/// Writes the lanes' blocks of SHAKE128 into their streams, and some bytes after them.
#[inline(always)]
fn write_block<V: Vector>(state: &State<V>, at: usize, streams: &mut [Stream; LANES]) {
    for (i, rows) in state[..24].as_chunks().0.iter().enumerate() {
        for (row, stream) in V::transpose_lanes(*rows).into_iter().zip(&mut *streams) {
            row.store(stream[at + VECTOR_BYTES * i..].first_chunk_mut().expect("room for a vector"));
        }
    }
}

/// Decodes t, and checks it (FIPS 203, section 7.2).
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

/// Transposes the keys' words of 64 bits, one key in each lane. Lanes without a client get zeros.
#[inline(always)]
fn transpose_keys<V: Vector>(keys: &[&PublicKey], words: &mut [V; KEY_WORDS]) {
    // The last vector overlaps the previous one.
    let starts = (0..ML_KEM_PUBLIC_KEY_BYTES - VECTOR_BYTES).step_by(VECTOR_BYTES);
    for start in starts.chain([ML_KEM_PUBLIC_KEY_BYTES - VECTOR_BYTES]) {
        let mut rows = [V::zero(); LANES];
        for (row, key) in rows.iter_mut().zip(keys) {
            *row = V::load(key[start..].first_chunk().expect("a vector remains"));
        }
        words[start / 8..][..8].copy_from_slice(&V::transpose_lanes(rows));
    }
}

#[inline(always)]
fn word_of(key: &PublicKey, word: usize) -> u64 {
    u64::from_le_bytes(key.as_chunks().0[word])
}
