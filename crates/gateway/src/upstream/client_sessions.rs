//! TLS sessions of servers, for the connections that come next.

use super::address::ServerAddress;
use boring::ssl::{SslSession, SslVersion};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// A server by its address and the name that its certificate was verified for.
pub(super) type Peer = (ServerAddress, Arc<str>);

/// A ticket of TLS 1.3 is for one connection (RFC 8446 appendix C.4), so several are kept of each server: as many as a
/// pool keeps connections by default, which a server may close and get again all at once. Each takes 2 to 3 KiB.
const KEPT: usize = 128;

/// Clients may choose the names of servers, and each name has its sessions.
const MOST_PEERS: usize = 4096;

/// The sessions of one upstream, newest last. They were verified by its rules, and serve nobody else.
#[derive(Default)]
pub(super) struct ClientSessions(Mutex<HashMap<Peer, Vec<SslSession>>>);

impl ClientSessions {
    pub(super) fn put(&self, peer: &Peer, session: SslSession) {
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

    /// The newest; the last one of TLS 1.2 stays, because it may be used again and is not replaced.
    pub(super) fn take(&self, peer: &Peer) -> Option<SslSession> {
        let mut sessions = self.lock();
        let kept = sessions.get_mut(peer)?;
        let newest = kept.pop()?;
        if kept.is_empty() && newest.protocol_version() != SslVersion::TLS1_3 {
            kept.push(newest.clone());
        }
        Some(newest)
    }

    /// Forgets those of servers at other addresses.
    pub(super) fn retain(&self, is_there: impl Fn(&ServerAddress) -> bool) {
        self.lock().retain(|(address, _), _| is_there(address));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Peer, Vec<SslSession>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
