//! Which certificate a client gets: by SNI (RFC 6066 section 3), then by what it can verify.

use super::hello::Abilities;
use boring::ssl::SslContext;
use quadrille_engine::KeyType;
use std::collections::HashMap;

/// A listener's certificates, by name.
#[derive(Default)]
pub(crate) struct Certificates {
    exact: HashMap<String, Vec<Entry>>,
    /// By the part behind `*.`; a wildcard stands for one label.
    wildcard: HashMap<String, Vec<Entry>>,
    default: Vec<Entry>,
    default_names: Vec<String>,
    max_tls13: bool,
}

#[derive(Clone)]
struct Entry {
    key_type: KeyType,
    context: SslContext,
    site: [u8; 32],
}

impl Certificates {
    pub(super) fn new(max_tls13: bool) -> Self {
        Self { max_tls13, ..Self::default() }
    }

    /// Adds a certificate. The first becomes the default, together with those of other key types for the same names.
    /// `site` is what its sessions are bound to.
    pub(super) fn add(&mut self, names: &[String], key_type: KeyType, context: SslContext, site: [u8; 32]) {
        let entry = Entry { key_type, context, site };
        if self.default.is_empty() {
            self.default_names = names.to_vec();
            self.default.push(entry.clone());
        } else if names.iter().any(|name| self.default_names.contains(name)) {
            insert(&mut self.default, entry.clone());
        }
        for name in names {
            let list = match name.strip_prefix("*.") {
                Some(parent) => self.wildcard.entry(parent.to_owned()).or_default(),
                None => self.exact.entry(name.clone()).or_default(),
            };
            insert(list, entry.clone());
        }
    }

    /// The context of the certificate for this client, and its site; the name in lower case. A certificate for the exact name comes before a wildcard, but
    /// one that the client can verify before either; an unknown name gets the default.
    pub(super) fn select(&self, sni: Option<&str>, client: Abilities) -> Option<(&SslContext, &[u8; 32])> {
        let mut named = sni.map(|name| self.named(name)).unwrap_or_default();
        if named.is_empty() {
            named = self.default.iter().collect();
        }
        let able = named.iter().find(|entry| client.accepts(entry.key_type, self.max_tls13));
        // A client that can verify none of them fails either way: BoringSSL then says why.
        able.or(named.first()).map(|entry| (&entry.context, &entry.site))
    }

    fn named(&self, name: &str) -> Vec<&Entry> {
        let wildcard = name.split_once('.').and_then(|(_, parent)| self.wildcard.get(parent));
        self.exact.get(name).into_iter().chain(wildcard).flatten().collect()
    }
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
