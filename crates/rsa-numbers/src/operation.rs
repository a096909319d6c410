//! Private operation, in the form used by all kernels.

use crate::{InputError, KeySize, Modulus, words::Secret};
use std::fmt;

/// RSA key in the form used by one kind of kernel.
pub trait RsaKey {
    /// Modulus, which bounds every input.
    fn modulus(&self) -> Modulus<'_>;
}

/// Reason for which an operation has no result. Its output is all zeros, unless it has not been run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateOperationError {
    /// The operation has not been run, and its output is as it was.
    #[error("the operation has not been run")]
    NotRun,
    /// Error of the caller.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The key was uploaded to another device.
    #[error("the key is not on this device")]
    ForeignKey,
    /// The computation failed, and its result was destroyed. Computing it again elsewhere may succeed; if it does
    /// not, the key or the machine is at fault.
    #[error("the result failed the check with the public key")]
    Fault,
}

/// Private operation: output = input^d mod n.
pub struct PrivateOperation<'a, K> {
    key: &'a K,
    input: &'a [u8],
    output: &'a mut [u8],
    outcome: Result<(), PrivateOperationError>,
}

impl<'a, K> PrivateOperation<'a, K> {
    /// Creates an operation. Input and output are big-endian and as long as the key's modulus.
    pub fn new(key: &'a K, input: &'a [u8], output: &'a mut [u8]) -> Self {
        Self { key, input, output, outcome: Err(PrivateOperationError::NotRun) }
    }

    /// Outcome: the output is valid if `Ok`, and all zeros after a failure.
    ///
    /// # Errors
    /// See [`PrivateOperationError`].
    pub fn outcome(&self) -> Result<(), PrivateOperationError> {
        self.outcome
    }

    /// Result, if the [`outcome`](Self::outcome) is `Ok`.
    pub fn output(&self) -> &[u8] {
        self.output
    }

    /// Key of the operation.
    pub fn key(&self) -> &'a K {
        self.key
    }

    /// Input, of any length and value: see [`check`](Self::check).
    pub fn input(&self) -> &'a [u8] {
        self.input
    }

    /// Called by kernels: `write` stores a checked result in the output, and the outcome is set. After an error the
    /// output is all zeros, regardless of what was written.
    pub fn finish(&mut self, write: impl FnOnce(&mut [u8]) -> Result<(), PrivateOperationError>) {
        self.outcome = write(self.output);
        if self.outcome.is_err() {
            self.output.fill(0);
        }
    }
}

impl<K: RsaKey> PrivateOperation<'_, K> {
    /// Size of the key.
    pub fn size(&self) -> KeySize {
        self.key.modulus().size
    }

    /// Checks input and output in place.
    ///
    /// # Errors
    /// See [`Modulus::check`]; [`InputError::Length`] if the output is not as long as the modulus.
    pub fn check(&self) -> Result<(), InputError> {
        let modulus = self.key.modulus();
        if self.output.len() != modulus.size.bytes() {
            return Err(InputError::Length);
        }
        modulus.check(self.input)
    }

    /// Parses the checked input into [`KeySize::words`] words.
    ///
    /// # Errors
    /// See [`check`](Self::check).
    pub fn parse(&self) -> Result<Secret, InputError> {
        self.check()?;
        self.key.modulus().parse(self.input)
    }
}

impl<K: RsaKey> fmt::Debug for PrivateOperation<'_, K> {
    /// Shows size and outcome, but not key, input or output.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrivateOperation")
            .field("size", &self.size())
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Largest modulus of its size, odd as every modulus is.
    struct Largest([u64; 32]);

    impl RsaKey for Largest {
        fn modulus(&self) -> Modulus<'_> {
            Modulus { size: KeySize::Rsa2048, n: &self.0 }
        }
    }

    const KEY: Largest = Largest([u64::MAX; 32]);

    #[test]
    fn a_result_is_written_and_a_failure_leaves_zeros() {
        let mut output = [0xa5; 256];
        let mut op = PrivateOperation::new(&KEY, &[1; 256], &mut output);
        assert_eq!(op.outcome(), Err(PrivateOperationError::NotRun));
        assert_eq!(op.output(), [0xa5; 256]);
        let half_written = |error: Option<PrivateOperationError>| {
            move |output: &mut [u8]| {
                output[..128].fill(7);
                error.map_or(Ok(()), Err)
            }
        };
        op.finish(half_written(Some(PrivateOperationError::Fault)));
        assert_eq!((op.outcome(), op.output()), (Err(PrivateOperationError::Fault), &[0; 256][..]));
        op.finish(half_written(None));
        assert_eq!((op.outcome(), op.output()[127], op.output()[128]), (Ok(()), 7, 0));
    }

    #[test]
    fn inputs_and_outputs_are_checked_against_the_modulus() {
        let check = |input: &[u8], output_len: usize| {
            let mut output = vec![0; output_len];
            let op = PrivateOperation::new(&KEY, input, &mut output);
            let checked = op.check();
            assert_eq!(op.parse().map(drop), checked);
            checked
        };
        let mut last = [0xff; 256];
        assert_eq!(check(&last, 256), Err(InputError::TooLarge));
        last[255] = 0xfe;
        assert_eq!(check(&last, 256), Ok(()));
        for (input, output) in [(255, 256), (257, 256), (256, 255), (256, 257), (0, 0)] {
            assert_eq!(check(&vec![0; input], output), Err(InputError::Length), "{input} {output}");
        }
    }

    #[test]
    fn the_input_becomes_words() {
        let mut input = [0; 256];
        (input[0], input[255]) = (1, 2);
        let words = PrivateOperation::new(&KEY, &input, &mut [0; 256]).parse().expect("below the modulus");
        assert_eq!((words.len(), words[0], words[31]), (32, 2, 1 << 56));
        assert!(words[1..31].iter().all(|&word| word == 0));
    }

    #[test]
    fn debug_says_size_and_outcome_alone() {
        let mut output = [0xa5; 256];
        let op = PrivateOperation::new(&KEY, &[0x5a; 256], &mut output);
        assert_eq!(format!("{op:?}"), "PrivateOperation { size: Rsa2048, outcome: Err(NotRun), .. }");
    }
}
