//! What ends a client's session.

use crate::wire::{KeyName, Violation};

/// Why a session cannot go on. Requests that have not been completed never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server has done what no correct one does.
    #[error("{0}")]
    Violation(#[from] Violation),
    /// The server is silent, and taken for dead.
    #[error("it does not answer")]
    Silent,
    /// The server has returned a result, for an operation with this key, that the operation does not accept.
    #[error("it returned a wrong result")]
    WrongResult(KeyName),
}
