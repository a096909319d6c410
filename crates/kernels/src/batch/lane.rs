//! One operation as the lanes see it.

use super::{arithmetic::Arithmetic, constants::KeyConstants};
use quadrille_rsa_numbers::Numbers;

/// One operation as the lanes see it.
pub(crate) struct Lane<'a, A: Arithmetic> {
    /// Of the key.
    pub(crate) numbers: &'a Numbers,
    pub(crate) constants: &'a KeyConstants<A>,
    /// Less than n, and as long.
    pub(crate) input: &'a [u64],
}
