//! Client-side TLS sessions for resumption with endpoints.

use crate::upstream::address::ServerAddress;
use boring::ssl::{SslSession, SslVersion};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// An endpoint by its address and the name that its certificate was verified for.
pub(crate) type Peer = (ServerAddress, Arc<str>);

/// Number of sessions kept per endpoint. A TLS 1.3 ticket is for one connection (RFC 8446 appendix C.4), so as many
/// are kept as a pool keeps connections by default, all of which a server may close at once. Each takes 2 to 3 KiB.
const KEPT: usize = 128;

/// Maximum number of peers: clients may choose the names of endpoints, and each name has its sessions.
const MOST_PEERS: usize = 4096;

/// Sessions of one upstream, newest last. They were verified by its rules, and are not used for other upstreams.
#[derive(Default)]
pub(crate) struct ClientSessions(Mutex<HashMap<Peer, Vec<SslSession>>>);

impl ClientSessions {
    pub(crate) fn put(&self, peer: &Peer, session: SslSession) {
        let mut sessions = self.lock();
        if sessions.len() >= MOST_PEERS && !sessions.contains_key(peer) {
            return;
        }
        let kept = sessions.entry(peer.clone()).or_default();
        if kept.len() == KEPT {
            kept.remove(0);
        }
        kept.push(session);
    }

    /// Takes the newest session; the last one of TLS 1.2 remains, because it may be reused and is not replaced.
    pub(crate) fn take(&self, peer: &Peer) -> Option<SslSession> {
        let mut sessions = self.lock();
        let kept = sessions.get_mut(peer)?;
        let newest = kept.pop()?;
        if kept.is_empty() && newest.protocol_version() != SslVersion::TLS1_3 {
            kept.push(newest.clone());
        }
        Some(newest)
    }

    /// Removes sessions of endpoints at other addresses.
    pub(crate) fn retain(&self, is_there: impl Fn(&ServerAddress) -> bool) {
        self.lock().retain(|(address, _), _| is_there(address));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Peer, Vec<SslSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
