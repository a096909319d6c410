//! Which certificate a client gets: by SNI (RFC 6066 section 3), then by what it can verify.

use super::{certificate::Certificate, client_capabilities::ClientCapabilities};
use crate::host_map::HostMap;
use boring::ssl::SslContext;
use quadrille_acme::{OnDemand, unix_now};
use quadrille_engine::KeyType;
use quadrille_ocsp::Staple;
use std::{collections::HashMap, sync::Arc};

/// A listener's certificates, by name.
#[derive(Default)]
pub(crate) struct CertificateSelector {
    /// A wildcard stands for one label.
    names: HostMap<Vec<Entry>>,
    default: Vec<Entry>,
    default_names: Vec<String>,
    /// Names whose certificates are ordered and not there yet.
    awaited: HostMap<bool>,
    /// Who is told of unknown names.
    pub(super) on_demand: Option<Arc<OnDemand>>,
    max_tls13: bool,
}

/// What connections with one certificate need.
#[derive(Clone)]
pub(super) struct Entry {
    pub(super) key_type: KeyType,
    /// Whether its private-key operations wait for a compute thread of this process.
    pub(super) queued: bool,
    pub(super) context: SslContext,
    /// What its sessions are bound to.
    pub(super) session_binding: [u8; 32],
    /// The response that is fetched to be stapled, in place of one in the context: a newer one needs no other context.
    pub(super) staple: Option<Arc<Staple>>,
}

/// A certificate for one client.
pub(super) struct Selected<'a> {
    pub(super) entry: &'a Entry,
    /// The configured name that the client's is, or falls under; empty for the default.
    pub(super) name: &'a str,
}

impl CertificateSelector {
    pub(super) fn new(max_tls13: bool) -> Self {
        Self { max_tls13, ..Self::default() }
    }

    /// Adds a certificate. The first becomes the default, together with those of other key types for the same names.
    pub(super) fn add(&mut self, names: &[String], entry: Entry) {
        if self.default.is_empty() {
            self.default_names = names.to_vec();
            self.default.push(entry.clone());
        } else if names.iter().any(|name| self.default_names.contains(name)) {
            insert(&mut self.default, entry.clone());
        }
        for name in names {
            insert(self.names.entry(name), entry.clone());
        }
    }

    /// A name for which there is no certificate yet. Until there is, it gets none: the default is for unknown names.
    pub(super) fn expect(&mut self, name: &str) {
        *self.awaited.entry(name) = true;
    }

    /// The certificate for this client; the name in lower case. A certificate for the exact name comes before a wildcard,
    /// but one that the client can verify before either; an unknown name gets the default. `None` if there
    /// is none, or none yet.
    pub(super) fn select<'a>(
        &'a self,
        sni: Option<&'a str>,
        client: ClientCapabilities,
    ) -> Option<Selected<'a>> {
        let exact = sni.and_then(|name| Some((name, self.names.exact(name)?)));
        let wildcard =
            sni.and_then(|name| Some((name.split_once('.')?.1, self.names.one_label_wildcard(name)?)));
        let mut named = exact.into_iter().chain(wildcard).peekable();
        if named.peek().is_none() && sni.is_some_and(|name| self.is_awaited(name) || self.is_wished(name)) {
            return None;
        }
        let default = named.peek().is_none().then_some(("", &self.default));
        let all = named.chain(default);
        let mut all = all.flat_map(|(name, list)| list.iter().map(move |entry| Selected { entry, name }));
        let first = all.next()?;
        let is_able = |selected: &Selected<'_>| client.can_verify(selected.entry.key_type, self.max_tls13);
        if is_able(&first) {
            return Some(first);
        }
        // A client that can verify none of them fails either way: BoringSSL then says why.
        Some(all.find(is_able).unwrap_or(first))
    }

    /// Whether there may be a certificate for it soon, because somebody has asked for it.
    fn is_wished(&self, name: &str) -> bool {
        self.on_demand.as_ref().is_some_and(|on_demand| on_demand.wish(name, unix_now()))
    }

    fn is_awaited(&self, name: &str) -> bool {
        self.awaited.exact(name).or_else(|| self.awaited.one_label_wildcard(name)).is_some()
    }
}

/// Certificates that no client would get, because each of their names has one with a key of the same type before them:
/// pairs of their index and of the index of the first such certificate.
///
/// Which of two signatures a client can verify is known by the type of the key. It is not known of the certificates'
/// own signatures, so that a second one cannot be kept for clients that want SHA-1 there: no browser does any more.
pub(crate) fn shadowed(certificates: &[Arc<Certificate>]) -> Vec<(usize, usize)> {
    let mut first = HashMap::new();
    let mut shadowed = Vec::new();
    for (index, certificate) in certificates.iter().enumerate() {
        let key_type = certificate.key.key_type();
        let mut before = None;
        let mut is_new = certificate.names.is_empty();
        for name in &certificate.names {
            match *first.entry((name, key_type)).or_insert(index) {
                other if other == index => is_new = true,
                other => before = before.or(Some(other)),
            }
        }
        shadowed.extend(before.filter(|_| !is_new).map(|before| (index, before)));
    }
    shadowed
}

/// One entry for each key type, the first given wins; cheaper signatures come first.
fn insert(list: &mut Vec<Entry>, entry: Entry) {
    if list.iter().any(|known| known.key_type == entry.key_type) {
        return;
    }
    list.push(entry);
    list.sort_by_key(|entry| match entry.key_type {
        KeyType::EcdsaP256 => 0,
        KeyType::Ed25519 => 1,
        KeyType::EcdsaP384 => 2,
        KeyType::EcdsaP521 => 3,
        KeyType::Rsa { bits } => bits,
    });
}
