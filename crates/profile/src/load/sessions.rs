//! Sessions issued by the server, for later connections to offer.

use super::connection::server_name;
use boring::ssl::{SslRef, SslSession, SslVersion};
use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// Maximum number of sessions kept for each server name: more than connections in flight, and little memory.
const KEPT: usize = 4096;

/// Sessions issued by the server: counted, and kept if they will be offered.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions(Arc<Inner>);

#[derive(Default)]
struct Inner {
    keep: bool,
    handed_out: AtomicU64,
    by_name: Mutex<HashMap<String, VecDeque<SslSession>>>,
}

impl std::fmt::Debug for Inner {
    /// Does not show the sessions, which are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions").field("handed_out", &self.handed_out).finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(keep: bool) -> Self {
        Self(Arc::new(Inner { keep, ..Inner::default() }))
    }

    /// Stores a session. Called by BoringSSL for each session id (TLS 1.2) or ticket.
    pub(super) fn keep(&self, ssl: &mut SslRef, session: SslSession) {
        self.0.handed_out.fetch_add(1, Ordering::Relaxed);
        if !self.0.keep {
            return;
        }
        let name = ssl.servername(boring::ssl::NameType::HOST_NAME).unwrap_or_default().to_owned();
        let mut by_name = self.0.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = by_name.entry(name).or_default();
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(session);
    }

    /// Takes a session for this name: the newest, and in TLS 1.3 only once (RFC 8446 appendix C.4).
    pub(super) fn take(&self, name: &str) -> Option<SslSession> {
        let mut by_name = self.0.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = by_name.get_mut(server_name(name).unwrap_or_default())?;
        let session = kept.pop_back()?;
        if session.protocol_version() != SslVersion::TLS1_3 {
            kept.push_back(session.clone());
        }
        Some(session)
    }

    pub(super) fn handed_out(&self) -> u64 {
        self.0.handed_out.load(Ordering::Relaxed)
    }
}
