//! What a key server serves, where it is found, and who may ask it for what, as plain data.

mod address;
mod policy;
mod protocol;

pub use address::{Address, PORT};
pub use policy::{ClientPattern, Limits, NameKind, Pattern, Policy, Rule};
pub use protocol::Protocol;

use super::{Admin, EngineSettings, Place, Source};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// Everything one `quadrille keyserver` process does.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyServer {
    /// The directory whose keys are served.
    pub keys: (PathBuf, Place),
    /// Where clients connect; at least one.
    pub listen: Vec<(Listen, Place)>,
    /// Who may connect to its Unix sockets.
    pub unix_access: UnixAccess,
    /// The server's own certificate, PEM, leaf first; its key; and the CAs that clients' certificates must lead to.
    /// Needed for TCP.
    pub tls: Option<[(Source, Place); 3]>,
    /// The file that says who may use which key.
    pub policy: Option<PathBuf>,
    /// The metrics and health endpoint; `None` switches it off.
    pub admin: Option<Admin>,
    /// Event-loop threads; `None` means one for every eight CPUs, and at least one.
    pub threads: Option<NonZeroUsize>,
    /// How operations are collected and computed.
    pub engine: EngineSettings,
    /// How long a drain waits for operations under way.
    pub drain_timeout: Duration,
}

/// Who may connect to a Unix socket: its group, and its mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnixAccess {
    /// A name or a number; `None` leaves the process's own group.
    pub group: Option<String>,
    /// Permission bits. `None` means user and group where a policy says who is served, and the user alone without.
    pub mode: Option<u32>,
}

/// Where clients connect.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// Mutual TLS.
    Tcp(SocketAddr),
    /// Without TLS, for users of this machine; with TLS for whoever begins with it.
    Unix(PathBuf),
}
