//! Random sampling.

use quadrille_config::fraction::ALL;

/// Returns true with a probability of `parts` in a million.
pub(crate) fn is_one_of(parts: u32) -> bool {
    fastrand::u32(..ALL) < parts
}
