//! Reasons for which a connection of a client has ended, for the log.

use crate::wire::Violation;
use std::io;

/// Reason for which a connection has ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum CloseReason {
    #[error("closed by the client")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Violation(#[from] Violation),
    #[error("idle timeout")]
    Idle,
    #[error("timeout: incomplete message, or replies not read")]
    Stuck,
    #[error("the policy no longer names the client")]
    NotNamed,
    #[error("the client's certificate is no longer accepted: {0}")]
    NotAccepted(String),
    #[error("the server is draining")]
    Drained,
}
