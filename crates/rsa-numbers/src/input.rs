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

/// The big-endian input of a private operation with the modulus `n` of a key of this size, as [`KeySize::words`]
/// words.
///
/// # Errors
/// See [`check_input`].
pub fn parse_input(size: KeySize, n: &[u64], input: &[u8], output_len: usize) -> Result<Secret, InputError> {
    check_input(size, n, input, output_len)?;
    words::from_be_bytes(input, size.words()).ok_or(InputError::Length)
}

/// Checks the big-endian input of a private operation where it is. Whether it is below the modulus becomes known, and
/// nothing else of it.
///
/// # Errors
/// See [`InputError`]; `output_len` is the length of the caller's output in bytes.
pub fn check_input(size: KeySize, n: &[u64], input: &[u8], output_len: usize) -> Result<(), InputError> {
    if input.len() != size.bytes() || output_len != size.bytes() {
        return Err(InputError::Length);
    }
    if is_below(input, n) { Ok(()) } else { Err(InputError::TooLarge) }
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
