//! Timeouts of clients.

use std::time::Duration;

/// Timeouts of slow clients.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timeouts {
    /// Time from accepting a connection to the end of the TLS handshake, a PROXY header included.
    pub handshake: Duration,
    /// Time from accepting a connection after which a handshake is useless: one that would finish later is refused at
    /// its beginning, and others are too if there are more than the machine can complete. `None` refuses none.
    pub handshake_deadline: Option<Duration>,
    /// Time from the first byte of a request to the end of its header; in HTTP/2, from the TLS handshake to the end
    /// of the preface.
    pub header: Duration,
    /// Time from the end of a request's header to the end of its body; with `None`, an upload may continue as long as
    /// data arrives.
    pub request: Option<Duration>,
    /// Time between requests on a persistent connection; in TCP mode, without a byte in either direction, or while
    /// one side accepts no data.
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
