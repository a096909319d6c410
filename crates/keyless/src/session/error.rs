//! Errors that end a client's session.

use crate::wire::{KeyName, Violation};

/// Reason for which a session has ended. Open requests will not be completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server has violated the protocol.
    #[error("{0}")]
    Violation(#[from] Violation),
    /// The server is silent, and considered dead.
    #[error("the server does not respond")]
    Silent,
    /// The server has returned a result for an operation with this key that the operation does not accept.
    #[error("the server returned a wrong result")]
    WrongResult(KeyName),
}
