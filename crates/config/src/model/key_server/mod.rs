//! Configuration of a key server, as plain data: its keys, addresses and policy.

mod address;
mod policy;
mod protocol;

pub use address::{Address, PORT};
pub use policy::{ClientPattern, Limits, NameKind, Pattern, Policy, Rule};
pub use protocol::Protocol;

use super::{Admin, EngineSettings, Place, Source, UnixAccess};
use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

/// The configuration of one `quadrille keyserver` process.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyServer {
    /// The directory whose keys are served.
    pub keys: (PathBuf, Place),
    /// The addresses on which it listens; at least one.
    pub listen: Vec<(Listen, Place)>,
    /// Access to its Unix sockets.
    pub unix_access: UnixAccess,
    /// The server's own certificate, PEM, leaf first; its key; and the CAs that clients' certificates must chain to.
    /// Needed for TCP.
    pub tls: Option<[(Source, Place); 3]>,
    /// Certificate revocation lists, PEM, of all CAs of clients; `None` if certificates are not checked for revocation.
    pub client_crl: Option<(Source, Place)>,
    /// The policy file: the keys that each client may use.
    pub policy: Option<PathBuf>,
    /// The metrics and health endpoint; `None` switches it off.
    pub admin: Option<Admin>,
    /// Event-loop threads; `None` means one for every eight CPUs, and at least one.
    pub threads: Option<NonZeroUsize>,
    /// Batching and computation of operations.
    pub engine: EngineSettings,
    /// Time that a drain waits for operations in flight.
    pub drain_timeout: Duration,
}

/// An address on which the server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listen {
    /// Mutual TLS.
    Tcp(SocketAddr),
    /// A Unix socket, for users of this machine; with TLS if the client begins with it.
    Unix(PathBuf),
}
