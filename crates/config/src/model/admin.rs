//! The admin endpoint: dashboard, metrics, health and actions.

use super::Place;
use std::{net::SocketAddr, path::PathBuf};

/// The metrics and health endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Admin {
    /// The address; `None` without one. It serves plain HTTP, so keep it on loopback or a private network.
    pub address: Option<SocketAddr>,
    /// Names under which the pages may be requested, in addition to `localhost` and IP addresses: `name` or `*.name`,
    /// in lower case. A request for another name, as in DNS rebinding, is refused.
    pub hosts: Vec<String>,
    /// Whether requests to the address may change something, such as take a server out of service.
    pub actions: bool,
    /// The Unix socket, on which the users that it admits may change something.
    pub socket: Option<AdminSocket>,
    /// The place of the address in the configuration.
    pub place: Place,
}

/// The Unix socket of the admin endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AdminSocket {
    /// The path of the socket.
    pub path: PathBuf,
    /// Group and mode of its file. Members of the group are admitted.
    pub access: UnixAccess,
    /// Ids of users that are admitted, in addition to root and the process's own user.
    pub users: Vec<u32>,
    /// The place in the configuration.
    pub place: Place,
}

/// Access to a Unix socket: its group, and its mode.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UnixAccess {
    /// The group, by name or number; `None` keeps the process's own group.
    pub group: Option<String>,
    /// Permission bits. `None` means the least that the users of the socket need.
    pub mode: Option<u32>,
}

impl Admin {
    /// Returns settings for this address, for loopback names and IP addresses only.
    pub fn new(address: SocketAddr, place: Place) -> Self {
        Self { address: Some(address), hosts: Vec::new(), actions: false, socket: None, place }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self::new(SocketAddr::from(([127, 0, 0, 1], 9901)), Place::builtin())
    }
}
