//! Sponges (FIPS 202) of eight states at once, one in each lane.

use super::vector::{VECTOR_BYTES, Vector};

pub(crate) use crate::keccak::{State, keccak};

/// Number of words of a block of SHA3-256 and SHAKE256, and of SHAKE128.
pub(super) const RATE_256: usize = 17;
pub(super) const RATE_128: usize = 21;
/// Padding after the message in a block of a hash and of an extendable-output function, and at the end of the block.
pub(super) const PAD_HASH: u64 = 0x06;
pub(super) const PAD_XOF: u64 = 0x1f;
pub(super) const PAD_END: u64 = 1 << 63;

#[inline(always)]
pub(super) fn absorb<V: Vector>(state: &mut State<V>, block: &[V]) {
    for (word, more) in state.iter_mut().zip(block) {
        *word = word.xor(*more);
    }
}

/// Returns a vector with the given word in each lane.
#[inline(always)]
pub(super) fn from_lanes<V: Vector>(lane: impl Fn(usize) -> u64) -> V {
    let mut bytes = [0; VECTOR_BYTES];
    for (i, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
        *bytes = lane(i).to_le_bytes();
    }
    V::load(&bytes)
}
