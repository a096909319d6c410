//! References to values of Secrets, in configurations that do not contain them.
//!
//! A reference has the form of a path below `/dev/null`, where no file can exist: one that is not replaced is an error.

use crate::object::Objects;
use quadrille_config::model::{CertificateSource, Gateway, KeySource, Source};
use std::{fmt, path::Path, sync::Arc};

const ROOT: &str = "/dev/null/secret/";

/// A value of a Secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Reference<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) key: &'a str,
}

impl fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ROOT}{}/{}/{}", self.namespace, self.name, self.key)
    }
}

impl<'a> Reference<'a> {
    fn of(path: &'a Path) -> Option<Self> {
        let mut parts = path.to_str()?.strip_prefix(ROOT)?.splitn(3, '/');
        Some(Self { namespace: parts.next()?, name: parts.next()?, key: parts.next()? })
    }
}

/// Replaces the references of a translation with `by_reference` by the certificates and keys of Secrets.
pub fn insert_secrets(model: &mut Gateway, objects: &Objects) {
    for listener in &mut model.listeners {
        for chain in listener.chains.iter_mut().chain(&mut listener.default_chain) {
            let Some(tls) = &mut chain.tls else { continue };
            Arc::make_mut(tls).certificates.iter_mut().for_each(|one| insert(one, objects));
        }
    }
    for upstream in model.upstreams.values_mut() {
        let transports = std::iter::once(&mut upstream.tls).chain(&mut upstream.more_transports);
        for tls in transports.flatten() {
            tls.certificate.iter_mut().for_each(|one| insert(one, objects));
        }
    }
}

fn insert(certificate: &mut Arc<CertificateSource>, objects: &Objects) {
    let certificate = Arc::make_mut(certificate);
    replace(&mut certificate.chain, objects);
    if let KeySource::Pem(key) = &mut certificate.key {
        replace(key, objects);
    }
}

fn replace(source: &mut Source, objects: &Objects) {
    let Some(Reference { namespace, name, key }) = source.path().and_then(|path| Reference::of(path)) else {
        return;
    };
    let secret = objects.secret(namespace, name);
    if let Some(Ok(text)) = secret.map(|secret| secret.text(key)) {
        *source = Source::inline(text.as_bytes());
    }
}
