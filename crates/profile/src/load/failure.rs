//! Failures of connections.

use std::fmt;

/// Stage of a connection, recorded when it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// TCP.
    Connect,
    /// TLS handshake.
    Handshake,
    /// Sending a request.
    Request,
    /// Reading its response.
    Response,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "connecting",
            Self::Handshake => "the handshake",
            Self::Request => "sending a request",
            Self::Response => "the response",
        })
    }
}

/// Reason that a connection failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// The stage at which it failed.
    pub stage: Stage,
    /// Description of the failure.
    pub reason: String,
}
