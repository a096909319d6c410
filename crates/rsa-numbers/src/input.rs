//! The input of a private operation.

use crate::{
    KeySize,
    words::{self, Secret},
};

/// Why an operation cannot be computed. The caller is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Input or output is not as long as the modulus.
    #[error("input and output must be exactly as long as the modulus")]
    Length,
    /// The input, as a number, is not below the modulus.
    #[error("the input is not below the modulus")]
    TooLarge,
}

/// The modulus of a key: what inputs are as long as, and below.
#[derive(Clone, Copy, Debug)]
pub struct Modulus<'a> {
    /// By the modulus.
    pub size: KeySize,
    /// [`KeySize::words`] of them, least significant first.
    pub n: &'a [u64],
}

impl Modulus<'_> {
    /// The big-endian input of a private operation, as [`KeySize::words`] words.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn parse(self, input: &[u8]) -> Result<Secret, InputError> {
        self.check(input)?;
        words::from_be_bytes(input, self.size.words()).ok_or(InputError::Length)
    }

    /// Checks the big-endian input of a private operation where it is. Whether it is below the modulus becomes known,
    /// and nothing else of it.
    ///
    /// # Errors
    /// See [`InputError`].
    pub fn check(self, input: &[u8]) -> Result<(), InputError> {
        if input.len() != self.size.bytes() {
            return Err(InputError::Length);
        }
        if is_below(input, self.n) { Ok(()) } else { Err(InputError::TooLarge) }
    }
}

/// Whether big-endian bytes, as a number, are below n, which has as many: by subtraction, so that the time says nothing
/// of where they differ.
fn is_below(bytes: &[u8], n: &[u64]) -> bool {
    let words = bytes.as_rchunks().1.iter().rev().map(|word| u64::from_be_bytes(*word));
    let borrow = |borrow, (word, n): (u64, &u64)| {
        let (difference, first) = word.overflowing_sub(*n);
        let (_, second) = difference.overflowing_sub(u64::from(borrow));
        first | second
    };
    words.zip(n).fold(false, borrow)
}
