//! SHAKE256 (FIPS 202) of eight messages at once.

use super::kernels::Kernels;
use super::sponge::{BLOCK_256, RATE_256, State};

/// Output of SHAKE256.
pub(crate) type Digest = [u8; BLOCK_256];
pub(crate) const NO_DIGEST: Digest = [0; BLOCK_256];

/// Computes SHAKE256 of up to eight messages, whose lengths are public: a block of output each. If all messages have
/// the same number of blocks, the states can be squeezed further.
pub(crate) fn shake256<K: Kernels>(
    kernels: K,
    states: &mut State,
    messages: &[&[u8]],
    digests: &mut [Digest],
) {
    *states = State::ZERO;
    let last = messages.iter().map(|message| message.len() / BLOCK_256).max().unwrap_or(0);
    for block in 0..=last {
        for (state, message) in messages.iter().enumerate() {
            let Some(bytes) = message.get(BLOCK_256 * block..) else { continue };
            states.absorb(state, &bytes[..bytes.len().min(BLOCK_256)]);
            if bytes.len() < BLOCK_256 {
                states.pad(state, bytes.len(), RATE_256);
            }
        }
        kernels.keccak(states);
        for (state, (message, digest)) in messages.iter().zip(&mut *digests).enumerate() {
            if message.len() / BLOCK_256 == block {
                states.squeeze(state, digest);
            }
        }
    }
}
