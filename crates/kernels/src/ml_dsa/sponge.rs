//! States of SHAKE128 and SHAKE256 (FIPS 202), eight at once.

use super::vector::{STATES, StateVector};
use crate::keccak;

/// Words of a block of SHAKE128 and of SHAKE256.
pub(crate) const RATE_128: usize = 21;
pub(crate) const RATE_256: usize = 17;
/// Bytes of a block of SHAKE256.
pub(crate) const BLOCK_256: usize = 8 * RATE_256;

/// Eight states, word by word; word x + 5 y is the standard's lane (x, y).
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct State(pub(crate) [[u64; STATES]; 25]);

impl State {
    pub(crate) const ZERO: Self = Self([[0; STATES]; 25]);

    /// Adds the bytes of a block, or of its first part, to one of the states.
    pub(super) fn absorb(&mut self, state: usize, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for (word, bytes) in self.0.iter_mut().zip(words) {
            word[state] ^= u64::from_le_bytes(*bytes);
        }
        if !rest.is_empty() {
            let mut last = [0; 8];
            last[..rest.len()].copy_from_slice(rest);
            self.0[words.len()][state] ^= u64::from_le_bytes(last);
        }
    }

    /// Pads a block after `len` bytes, for an extendable-output function.
    pub(super) fn pad(&mut self, state: usize, len: usize, rate: usize) {
        self.0[len / 8][state] ^= 0x1f << (8 * (len % 8));
        self.0[rate - 1][state] ^= 1 << 63;
    }

    /// Absorbs a message that is shorter than a block.
    pub(crate) fn absorb_short(&mut self, state: usize, message: &[u8], rate: usize) {
        self.absorb(state, message);
        self.pad(state, message.len(), rate);
    }

    /// Copies the first bytes of a state.
    pub(crate) fn squeeze(&self, state: usize, bytes: &mut [u8]) {
        for (word, bytes) in self.0.iter().zip(bytes.as_chunks_mut().0) {
            *bytes = word[state].to_le_bytes();
        }
    }
}

/// Permutes eight states.
#[inline(always)]
pub(crate) fn permute<V: StateVector>(states: &mut State) {
    for first in (0..STATES).step_by(V::LANES) {
        let mut words = [V::zero(); 25];
        for (word, from) in words.iter_mut().zip(&states.0) {
            *word = V::load(from, first);
        }
        keccak::keccak(&mut words);
        for (word, to) in words.into_iter().zip(&mut states.0) {
            word.store(to, first);
        }
    }
}
