//! Certificate selection: by SNI (RFC 6066 section 3), then by the signatures that the client can verify and the trust
//! anchors that it requests.

use super::{
    client_capabilities::ClientCapabilities,
    files::Certificate,
    ml_dsa_sets::MlDsaSets,
    trust_anchor::{ChainAnchor, RequestedAnchors},
};
use crate::host_map::HostMap;
use boring::ssl::SslContext;
use quadrille_acme::OnDemand;
use quadrille_config::model::TrustAnchorId;
use quadrille_engine::KeyType;
use quadrille_ocsp::Staple;
use quadrille_unix_time::unix_now;
use std::{collections::HashMap, sync::Arc};

/// Certificates of a listener by name.
#[derive(Default)]
pub(crate) struct CertificateSelector {
    /// Certificates by name; a wildcard matches one label.
    names: HostMap<Vec<Entry>>,
    default: Vec<Entry>,
    default_names: Vec<String>,
    /// Names whose certificates are ordered and not available yet.
    awaited: HostMap<bool>,
    /// Receives unknown names.
    pub(crate) on_demand: Option<Arc<OnDemand>>,
    max_tls13: bool,
}

/// A certificate with its TLS context.
#[derive(Clone)]
pub(crate) struct Entry {
    pub(crate) key_type: KeyType,
    /// Parameter sets of ML-DSA in the signatures of its chain.
    pub(crate) in_chain: MlDsaSets,
    /// Whether its private-key operations are queued for a compute thread of this process.
    pub(crate) queued: bool,
    pub(crate) context: SslContext,
    /// Session-id context of its sessions.
    pub(crate) session_binding: [u8; 32],
    /// Fetched OCSP response, which takes precedence over the one in the context: a newer one does not require
    /// another context.
    pub(crate) staple: Option<Arc<Staple>>,
    /// The certificate itself, if its chain has a trust anchor identifier.
    pub(crate) anchored: Option<Arc<Certificate>>,
}

/// A certificate selected for a client.
pub(crate) struct Selected<'a> {
    pub(crate) entry: &'a Entry,
    /// Configured name that matches the client's; empty for the default.
    pub(crate) name: &'a str,
}

impl CertificateSelector {
    pub(crate) fn new(max_tls13: bool) -> Self {
        Self { max_tls13, ..Self::default() }
    }

    /// Adds a certificate. The first becomes the default, together with those of other key types for the same names.
    pub(crate) fn add(&mut self, names: &[String], entry: Entry) {
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

    /// Adds a name without a certificate yet. Until it has one, handshakes for it fail: the default is for unknown
    /// names.
    pub(crate) fn expect(&mut self, name: &str) {
        *self.awaited.entry(name) = true;
    }

    /// Selects the certificate for a client; `sni` is in lower case. An exact name takes precedence over a wildcard,
    /// and a certificate that the client can verify over both; unknown names get the default. Returns `None` if there
    /// is no certificate, or none yet.
    pub(crate) fn select<'a>(
        &'a self,
        sni: Option<&'a str>,
        client: ClientCapabilities,
        requested: RequestedAnchors<'_>,
    ) -> Option<Selected<'a>> {
        let mut named = self.named(sni).peekable();
        if named.peek().is_none() && sni.is_some_and(|name| self.is_awaited(name) || self.is_wished(name)) {
            return None;
        }
        // A client that can verify no certificate fails in any case: BoringSSL then reports why.
        let mut last_resort = None;
        for selected in self.or_default(named) {
            if self.suits(selected.entry, client, requested) {
                return Some(selected);
            }
            let is_better = last_resort
                .as_ref()
                .is_none_or(|last: &Selected<'_>| selected.entry.rarity() < last.entry.rarity());
            if is_better {
                last_resort = Some(selected);
            }
        }
        last_resort
    }

    /// Returns the trust anchors of certificates for a name that the client can verify, as in an extension of the
    /// server (section 5.1 of the draft): each with a length of one byte.
    pub(crate) fn available_anchors(&self, sni: Option<&str>, client: ClientCapabilities) -> Vec<u8> {
        let mut ids: Vec<&[u8]> = Vec::new();
        for Selected { entry, .. } in self.or_default(self.named(sni)) {
            if let Some(id) = entry.anchor_id()
                && self.is_verifiable(entry, client)
                && !ids.contains(&id)
            {
                ids.push(id);
            }
        }
        ids.iter().flat_map(|id| u8::try_from(id.len()).into_iter().chain(id.iter().copied())).collect()
    }

    /// Returns the certificates for a name with the configured name that matches: an exact one, then a wildcard.
    fn named<'a>(&'a self, sni: Option<&'a str>) -> impl Iterator<Item = (&'a str, &'a Vec<Entry>)> {
        let exact = sni.and_then(|name| Some((name, self.names.exact(name)?)));
        let wildcard =
            sni.and_then(|name| Some((name.split_once('.')?.1, self.names.one_label_wildcard(name)?)));
        exact.into_iter().chain(wildcard)
    }

    /// Returns these certificates, most preferred first; without any, those of the default.
    fn or_default<'a>(
        &'a self,
        named: impl Iterator<Item = (&'a str, &'a Vec<Entry>)>,
    ) -> impl Iterator<Item = Selected<'a>> {
        let mut named = named.peekable();
        let default = named.peek().is_none().then_some(("", &self.default));
        let all = named.chain(default);
        all.flat_map(|(name, list)| list.iter().map(move |entry| Selected { entry, name }))
    }

    /// Returns whether the certificate is for the client.
    fn suits(&self, entry: &Entry, client: ClientCapabilities, requested: RequestedAnchors<'_>) -> bool {
        let is_requested = |anchor| self.max_tls13 && client.offers_tls13() && requested.include(anchor);
        self.is_verifiable(entry, client) && entry.negotiated_anchor().is_none_or(is_requested)
    }

    /// Returns whether the client can verify the signatures of a handshake with the certificate.
    fn is_verifiable(&self, entry: &Entry, client: ClientCapabilities) -> bool {
        client.can_verify(entry.key_type, self.max_tls13) && client.can_verify_chain(entry.in_chain)
    }

    /// Returns the type of key that a client receives for a name if it requests no trust anchor; `None` if the client
    /// can verify no certificate.
    pub(super) fn key_type_for(&self, name: &str, client: ClientCapabilities) -> Option<KeyType> {
        let none = RequestedAnchors::default();
        let selected = self.select(Some(name), client, none)?;
        self.suits(selected.entry, client, none).then_some(selected.entry.key_type)
    }

    /// Returns the names with certificates for clients that request a trust anchor, each with the type of key and the
    /// anchor, in alphabetical order.
    pub(super) fn negotiated(&self) -> Vec<(String, KeyType, &ChainAnchor)> {
        let mut found = Vec::new();
        for (name, entries) in self.names.iter() {
            let anchors =
                entries.iter().filter_map(|entry| Some((entry.key_type, entry.negotiated_anchor()?)));
            found.extend(anchors.map(|(key_type, anchor)| (name.clone(), key_type, anchor)));
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
    }

    /// Returns the names whose clients receive different certificates, or one with ML-DSA, in alphabetical order.
    pub(super) fn names_with_a_choice(&self) -> Vec<String> {
        let has_a_choice = |entries: &[Entry]| {
            let needs_ml_dsa =
                |entry: &Entry| is_post_quantum(entry.key_type) || entry.in_chain != MlDsaSets::default();
            entries.len() > 1 || entries.iter().any(needs_ml_dsa)
        };
        let chosen = self.names.iter().filter(|(_, entries)| has_a_choice(entries));
        let mut names: Vec<String> = chosen.map(|(name, _)| name).collect();
        names.sort_unstable();
        names
    }

    /// Returns whether a certificate for the name may be available soon, because it is ordered on demand.
    fn is_wished(&self, name: &str) -> bool {
        self.on_demand.as_ref().is_some_and(|on_demand| on_demand.wish(name, unix_now()))
    }

    fn is_awaited(&self, name: &str) -> bool {
        self.awaited.exact(name).or_else(|| self.awaited.one_label_wildcard(name)).is_some()
    }
}

impl Entry {
    /// Returns the trust anchor that clients must request to receive the certificate, if there is one.
    pub(crate) fn negotiated_anchor(&self) -> Option<&ChainAnchor> {
        self.anchored.as_ref().and_then(|certificate| certificate.negotiated_anchor())
    }

    /// Returns the identifier of the chain's trust anchor.
    fn anchor_id(&self) -> Option<&[u8]> {
        self.anchored.as_ref()?.trust_anchor.as_ref()?.id().map(TrustAnchorId::as_bytes)
    }

    /// Returns an order of certificates by the clients that accept them: few clients last.
    fn rarity(&self) -> (bool, bool) {
        (self.negotiated_anchor().is_some(), is_post_quantum(self.key_type))
    }
}

/// Returns the certificates that would never be selected, because for each of their names an earlier certificate has
/// a key of the same type, and the same trust anchor: pairs of their index and the index of the first such certificate.
///
/// Whether a client can verify a signature of the key is known by the key's type. This is not known for the
/// certificate's own signature, so a second certificate cannot be kept for clients that require SHA-1 there; browsers
/// no longer do.
pub(crate) fn shadowed(certificates: &[Arc<Certificate>]) -> Vec<(usize, usize)> {
    let mut first = HashMap::new();
    let mut shadowed = Vec::new();
    for (index, certificate) in certificates.iter().enumerate() {
        let key_type = certificate.key.key_type();
        let mut before = None;
        let mut is_new = certificate.names.is_empty();
        for name in &certificate.names {
            match *first.entry((name, key_type, certificate.negotiated_anchor())).or_insert(index) {
                other if other == index => is_new = true,
                other => before = before.or(Some(other)),
            }
        }
        shadowed.extend(before.filter(|_| !is_new).map(|before| (index, before)));
    }
    shadowed
}

/// Adds an entry. There is one per key type and trust anchor, and the first one is kept. Certificates for clients that
/// request a trust anchor come first. Among others, post-quantum signatures come first, in the order of the
/// configuration, then the cheaper ones.
fn insert(list: &mut Vec<Entry>, entry: Entry) {
    let is_same = |known: &Entry| {
        known.key_type == entry.key_type && known.negotiated_anchor() == entry.negotiated_anchor()
    };
    if list.iter().any(is_same) {
        return;
    }
    list.push(entry);
    list.sort_by_key(|entry| (entry.negotiated_anchor().is_none(), cost(entry.key_type)));
}

/// Returns an order of key types: post-quantum ones, then the cheaper ones.
fn cost(key_type: KeyType) -> u32 {
    match key_type {
        KeyType::MlDsa(_) => 0,
        KeyType::EcdsaP256 => 1,
        KeyType::Ed25519 => 2,
        KeyType::EcdsaP384 => 3,
        KeyType::EcdsaP521 => 4,
        KeyType::Rsa { bits } => bits,
    }
}

fn is_post_quantum(key_type: KeyType) -> bool {
    matches!(key_type, KeyType::MlDsa(_))
}
