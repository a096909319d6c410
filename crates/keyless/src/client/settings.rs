//! Client settings.

use crate::{Address, Credentials, Trust};
use quadrille_config::model::key_server::Protocol;
use std::time::Duration;

/// Client settings.
#[derive(Clone)]
pub struct Settings {
    /// Servers: at least one, at most 64; all should hold the same keys.
    pub servers: Vec<Address>,
    /// Credentials of this client and the CAs it trusts; required for TCP.
    pub tls: Option<(Credentials, Trust)>,
    /// Protocol mode.
    pub protocol: Protocol,
    /// Whether frames of the batched mode are padded to multiples of 1 KiB, so that their lengths reveal less.
    pub padding: bool,
    /// Deadlines and hedging.
    pub failover: FailoverPolicy,
    /// Number of operations of one event loop that may be open before new ones are rejected.
    pub capacity: usize,
}

/// Deadlines and hedging.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverPolicy {
    /// Time after which an operation without a result fails.
    pub deadline: Duration,
    /// Silence with open operations after which a server is considered dead, and its operations go to others.
    pub stall: Duration,
    /// Whether a second request is sent when an operation takes longer than 99 of 100 do.
    pub hedge: bool,
    /// Time for which a server is not used after a wrong result; doubled each time.
    pub distrust: Duration,
    /// Idle time after which a connection is pinged.
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
    /// Creates settings with these servers and defaults.
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
