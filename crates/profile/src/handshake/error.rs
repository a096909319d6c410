//! Errors of measuring handshakes.

use super::kind::HandshakeKind;
use boring::error::ErrorStack;

/// Reason that a handshake could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// BoringSSL rejected the configuration.
    #[error("BoringSSL: {0}")]
    BoringSsl(#[from] ErrorStack),
    /// A certificate could not be made.
    #[error("cannot create a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The engine did not start.
    #[error("cannot start a thread for the engine: {0}")]
    Engine(#[from] std::io::Error),
    /// The handshake did not finish, which is a defect.
    #[error("{kind}: the handshake does not finish: {reason}")]
    Stuck {
        /// The kind of handshake.
        kind: HandshakeKind,
        /// The reason.
        reason: String,
    },
}
