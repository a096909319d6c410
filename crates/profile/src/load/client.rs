//! Client state that outlasts a load: the TLS context and the sessions received.

use super::{Load, LoadError, sessions::Sessions};
use boring::ssl::SslContext;

/// A client that servers see over several loads: it reconnects with its sessions.
#[derive(Clone)]
pub struct Client {
    pub(super) context: SslContext,
    pub(super) sessions: Sessions,
}

impl std::fmt::Debug for Client {
    /// Does not show the sessions, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("sessions", &self.sessions).finish_non_exhaustive()
    }
}

impl Client {
    pub(super) fn new(load: &Load) -> Result<Self, LoadError> {
        let sessions = Sessions::new(load.resumed > 0.0);
        Ok(Self { context: load.offer.context(&sessions)?, sessions })
    }
}
