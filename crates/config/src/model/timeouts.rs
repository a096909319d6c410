//! How long a peer may take.

use std::time::Duration;

/// When slow peers are dropped.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timeouts {
    /// From accept to the end of the TLS handshake, a PROXY header included.
    pub handshake: Duration,
    /// From accept until a handshake is of no use any more: one that would be later is refused at its beginning, and so are
    /// others when there are more than the machine can do. `None` refuses nobody.
    pub handshake_deadline: Option<Duration>,
    /// From the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the end of the
    /// preface.
    pub header: Duration,
    /// From the end of a request's header to the end of its body; `None` lets an upload take as long as it moves.
    pub request: Option<Duration>,
    /// Between requests on a kept-alive connection; in TCP mode, without a byte in either direction, or while one side
    /// takes nothing of what it is sent.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            handshake: Duration::from_secs(10),
            handshake_deadline: Some(Duration::from_secs(3)),
            header: Duration::from_secs(30),
            request: None,
            idle: Duration::from_secs(75),
        }
    }
}
