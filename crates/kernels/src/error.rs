//! What can go wrong with an operation.

use quadrille_rsa_numbers::InputError;

/// Why a lane has no result. Its output is all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaneError {
    /// The operation has not been run.
    #[error("the operation has not been run")]
    NotRun,
    /// The caller is at fault.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The computation went wrong, and its result was destroyed. Computing it again elsewhere may succeed; if
    /// it does not, the key or the machine is at fault.
    #[error("the result failed the check with the public key")]
    Fault,
}
