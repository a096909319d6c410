//! Why connections fail.

use std::fmt;

/// How far a connection has come, and so where it failed.
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

/// Why a connection failed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Failure {
    /// What it was doing.
    pub stage: Stage,
    /// What went wrong, for a person.
    pub reason: String,
}
