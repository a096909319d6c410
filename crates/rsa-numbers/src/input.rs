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
/// words. Whether it is below the modulus becomes known, and nothing else of it.
///
/// # Errors
/// See [`InputError`]; `output_len` is the length of the caller's output in bytes.
pub fn parse_input(size: KeySize, n: &[u64], input: &[u8], output_len: usize) -> Result<Secret, InputError> {
    if input.len() != size.bytes() || output_len != size.bytes() {
        return Err(InputError::Length);
    }
    let input = words::from_be_bytes(input, size.words()).ok_or(InputError::Length)?;
    if words::less_mask(&input, n) == 0 {
        return Err(InputError::TooLarge);
    }
    Ok(input)
}
