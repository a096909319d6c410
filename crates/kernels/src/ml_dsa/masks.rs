//! Masks y (FIPS 204, algorithm 34): for eight polynomials at once.

use super::kernels::{Kernels, MaskInput};
use super::packing::Packed;
use super::sponge::{BLOCK_256, RATE_256, State};
use super::vector::{STATES, StateVector};
use super::workspace::Scratch;

/// Blocks of SHAKE256 for a polynomial: of 576 or 640 bytes.
const MASK_BLOCKS: usize = 5;

/// Returns the input for a polynomial.
pub(super) fn input(rho: &[u8; 64], counter: u16) -> MaskInput {
    let mut input = [0; 66];
    input[..64].copy_from_slice(rho);
    input[64..].copy_from_slice(&counter.to_le_bytes());
    input
}

/// Expands up to eight inputs of `scratch` to its streams.
pub(super) fn expand<K: Kernels>(kernels: K, count: usize, scratch: &mut Scratch) {
    let Scratch { inputs, states, streams, .. } = scratch;
    kernels.mask_inputs(&mut inputs[..count]);
    *states = State::ZERO;
    for (state, input) in inputs[..count].iter().enumerate() {
        states.absorb_short(state, input, RATE_256);
    }
    for block in 0..MASK_BLOCKS {
        kernels.keccak(states);
        kernels.copy_block(states, block, streams);
    }
}

/// Copies a block of all states to their streams.
#[inline(always)]
pub(crate) fn copy_block<V: StateVector>(states: &State, block: usize, streams: &mut [Packed; STATES]) {
    let (eights, last) = states.0[..RATE_256].as_chunks::<8>();
    for (i, words) in eights.iter().enumerate() {
        let mut transposed = [[0; 8]; STATES];
        V::transpose(words, &mut transposed);
        for (words, stream) in transposed.iter().zip(&mut *streams) {
            let bytes = stream[BLOCK_256 * block + 64 * i..].as_chunks_mut::<8>().0;
            words.iter().zip(bytes).for_each(|(word, bytes)| *bytes = word.to_le_bytes());
        }
    }
    for (word, stream) in last[0].iter().zip(streams) {
        stream[BLOCK_256 * (block + 1) - 8..][..8].copy_from_slice(&word.to_le_bytes());
    }
}
