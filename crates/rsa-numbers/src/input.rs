//! Input of a private operation.

use crate::{
    KeySize,
    words::{self, Secret},
};

/// Reason for which an operation cannot be computed: an error of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Input or output is not as long as the modulus.
    #[error("input and output must be exactly as long as the modulus")]
    Length,
    /// The input, as a number, is not below the modulus.
    #[error("the input is not below the modulus")]
    TooLarge,
}

/// Modulus of a key, which determines the length and the range of inputs.
#[derive(Clone, Copy, Debug)]
pub struct Modulus<'a> {
    /// Size of the modulus.
    pub size: KeySize,
    /// Modulus as [`KeySize::words`] words, least significant first.
    pub n: &'a [u64],
}

impl Modulus<'_> {
    /// Parses the big-endian input of a private operation into [`KeySize::words`] words.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn parse(self, input: &[u8]) -> Result<Secret, InputError> {
        self.check(input)?;
        words::from_be_bytes(input, self.size.words()).ok_or(InputError::Length)
    }

    /// Checks the big-endian input of a private operation in place. Reveals only whether it is below the modulus.
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

/// Returns whether big-endian bytes, as a number, are below n, which has the same length: by subtraction, so that the
/// time does not depend on where they differ.
fn is_below(bytes: &[u8], n: &[u64]) -> bool {
    let words = bytes.as_rchunks().1.iter().rev().map(|word| u64::from_be_bytes(*word));
    let borrow = |borrow, (word, n): (u64, &u64)| {
        let (difference, first) = word.overflowing_sub(*n);
        let (_, second) = difference.overflowing_sub(u64::from(borrow));
        first | second
    };
    words.zip(n).fold(false, borrow)
}
