//! How a client is set up.

use crate::{Address, Credentials, Trust};
use quadrille_config::model::key_server::Protocol;
use std::time::Duration;

/// How a client is set up.
#[derive(Clone)]
pub struct Settings {
    /// At least one, at most 64; all should hold the same keys.
    pub servers: Vec<Address>,
    /// With what this client shows who it is, and whom it believes; needed for TCP.
    pub tls: Option<(Credentials, Trust)>,
    /// Which mode is spoken.
    pub protocol: Protocol,
    /// Pad frames of our own mode to multiples of 1 KiB, so that their lengths tell less.
    pub padding: bool,
    /// When to give up, and when to ask a second server.
    pub failover: FailoverPolicy,
    /// Operations of one event loop that may be open before new ones are refused.
    pub capacity: usize,
}

/// When to give up, and when to ask a second server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverPolicy {
    /// An operation without a result after this time has failed.
    pub deadline: Duration,
    /// A server that leaves an operation unanswered and says nothing for so long is taken for dead, and its operations
    /// go to others.
    pub stall: Duration,
    /// Ask a second server when an operation takes longer than 99 of 100 do.
    pub hedge: bool,
    /// A server that has returned a wrong result is not asked again for so long; doubled each time.
    pub distrust: Duration,
    /// A connection on which nothing has come for so long is asked whether its server is still there.
    pub ping: Duration,
}

impl Default for FailoverPolicy {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(5),
            stall: Duration::from_secs(1),
            hedge: true,
            distrust: Duration::from_secs(60),
            ping: Duration::from_secs(5),
        }
    }
}

impl Settings {
    /// These servers, and otherwise what holds when nothing is said.
    pub fn new(servers: Vec<Address>, tls: Option<(Credentials, Trust)>) -> Self {
        Self {
            servers,
            tls,
            protocol: Protocol::Auto,
            padding: false,
            failover: FailoverPolicy::default(),
            capacity: 16 * 1024,
        }
    }
}
