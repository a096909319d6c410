//! What can go wrong.

use super::kind::HandshakeKind;
use boring::error::ErrorStack;

/// Why a handshake could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// BoringSSL refuses what was set up.
    #[error("BoringSSL: {0}")]
    BoringSsl(#[from] ErrorStack),
    /// No certificate could be made.
    #[error("no certificate could be made: {0}")]
    Certificate(#[from] rcgen::Error),
    /// The engine does not start.
    #[error("no thread for the engine: {0}")]
    Engine(#[from] std::io::Error),
    /// The two ends did not come together, which is a defect.
    #[error("{kind}: the handshake does not come to its end: {reason}")]
    Stuck {
        /// Which kind.
        kind: HandshakeKind,
        /// What BoringSSL says.
        reason: String,
    },
}
