//! Operation in a lane.

use super::{arithmetic::Arithmetic, constants::KeyConstants};
use quadrille_rsa_numbers::Numbers;

/// Operation in a lane.
pub(crate) struct Lane<'a, A: Arithmetic> {
    /// Numbers of the key.
    pub(crate) numbers: &'a Numbers,
    pub(crate) constants: &'a KeyConstants<A>,
    /// Input, less than n, and as long.
    pub(crate) input: &'a [u64],
}
