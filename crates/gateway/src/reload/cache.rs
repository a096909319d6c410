//! Artifacts that snapshots are made of, kept from one to the next so that only what has changed is built again.

use super::control::Made;
use crate::{
    http::Router,
    model::{self, CertificateSource, ClientAuth, KeySource, Mode, RouteTable, Source, Tls},
    problem::Problem,
    tls::{ChainTls, certificate::Certificate, pem, remote_key, resumption_backend::ResumptionBackend},
    upstream::{Upstream, Upstreams},
};
use boring::{sha::Sha256, x509::X509};
use quadrille_engine::Engine;
use std::{
    collections::{HashMap, HashSet},
    path::PathBuf,
    sync::Arc,
};

type Digest = [u8; 32];
type Cas = Arc<Box<[X509]>>;

/// Artifacts of a snapshot, by what they were made from.
#[derive(Clone, Default)]
pub(crate) struct ArtifactCache {
    certificates: HashMap<Digest, Arc<Certificate>>,
    contexts: HashMap<Digest, Arc<ChainTls>>,
    /// By the address of the table, which the value holds.
    routers: HashMap<usize, Arc<Router>>,
    upstreams: Upstreams,
    cas: HashMap<Digest, Cas>,
}

/// A snapshot's artifacts as they come together: those of the snapshot before, or new ones.
pub(crate) struct ArtifactBuilder<'a> {
    before: &'a ArtifactCache,
    pub(crate) now: ArtifactCache,
    /// Contents of files, so that one that many name is read once.
    files: HashMap<PathBuf, Digest>,
}

impl<'a> ArtifactBuilder<'a> {
    pub(crate) fn new(before: &'a ArtifactCache) -> Self {
        Self { before, now: ArtifactCache::default(), files: HashMap::new() }
    }

    /// A certificate with its key, and what it was made from.
    pub(crate) fn certificate(
        &mut self,
        source: &CertificateSource,
        allow_weak_keys: bool,
        engine: &Engine,
    ) -> Result<(Arc<Certificate>, Digest), Problem> {
        let mut hasher = Sha256::new();
        hasher.update(&[u8::from(allow_weak_keys)]);
        hasher.update(&self.content(&source.chain));
        match &source.key {
            KeySource::Pem(key) => hasher.update(&self.content(key)),
            KeySource::Keyless(servers) => {
                hasher.update(b"keyless");
                hasher.update(&remote_key::fingerprint(servers).to_be_bytes());
                servers.fallback.iter().for_each(|key| hasher.update(&self.content(key)));
            }
        }
        source.ocsp.iter().for_each(|ocsp| hasher.update(&self.content(ocsp)));
        let digest = hasher.finish();
        let known = self.now.certificates.get(&digest).or_else(|| self.before.certificates.get(&digest));
        let certificate = match known {
            Some(known) => Arc::clone(known),
            None => {
                let certificate = Certificate::load(source, allow_weak_keys)?;
                certificate.key.prepare(engine);
                Arc::new(certificate)
            }
        };
        self.now.certificates.insert(digest, Arc::clone(&certificate));
        Ok((certificate, digest))
    }

    /// TLS with these certificates, which were made from these.
    pub(crate) fn tls(
        &mut self,
        tls: &Tls,
        mode: Mode,
        certificates: &[(Arc<Certificate>, Digest)],
        resumption: &Arc<ResumptionBackend>,
        engine: &Engine,
    ) -> Result<Arc<ChainTls>, Problem> {
        let mut hasher = Sha256::new();
        hasher.update(format!("{mode:?} {:?}", tls.policy).as_bytes());
        if let ClientAuth::Optional(check) | ClientAuth::Required(check) = &tls.policy.client_auth {
            check.sources().for_each(|source| hasher.update(&self.content(source)));
        }
        certificates.iter().for_each(|(_, digest)| hasher.update(digest));
        let digest = hasher.finish();
        let known = self.now.contexts.get(&digest).or_else(|| self.before.contexts.get(&digest));
        let known = known.filter(|known| Arc::ptr_eq(known.resumption(), resumption));
        let context = match known {
            Some(known) => Arc::clone(known),
            None => {
                let certificates: Vec<_> = certificates.iter().map(|(one, _)| Arc::clone(one)).collect();
                Arc::new(ChainTls::new(&tls.policy, mode, resumption, &certificates, engine)?)
            }
        };
        self.now.contexts.insert(digest, Arc::clone(&context));
        Ok(context)
    }

    /// These routes to the snapshot's upstreams.
    pub(crate) fn router(&mut self, table: &Arc<RouteTable>) -> Arc<Router> {
        let address = Arc::as_ptr(table).addr();
        let known = self.now.routers.get(&address).or_else(|| self.before.routers.get(&address));
        let router = match known.filter(|known| known.is_made_of(table, &self.now.upstreams)) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Router::new(table, &self.now.upstreams)),
        };
        self.now.routers.insert(address, Arc::clone(&router));
        router
    }

    /// An upstream with the servers that it has in the model, or, if it is kept, had.
    pub(crate) fn upstream(
        &mut self,
        name: &str,
        model: &model::Upstream,
    ) -> Result<UpstreamChange, Vec<Problem>> {
        let endpoints = Upstream::resolve(model)?;
        let ca = self.ca(model).map_err(|problem| vec![problem])?;
        let digest = ca.as_ref().map_or(0, |(_, digest)| *digest);
        let before = self.before.upstreams.get(name).filter(|before| before.has_settings(model, digest));
        let (upstream, change) = match before {
            Some(same) if same.has_endpoints(&endpoints) => (Arc::clone(same), UpstreamChange::None),
            Some(same) => (Arc::clone(same), UpstreamChange::Endpoints(Arc::clone(same), endpoints)),
            None => {
                let new = Upstream::new(name, model, endpoints, ca).map_err(|problem| vec![problem])?;
                let new = Arc::new(new);
                (Arc::clone(&new), UpstreamChange::New(new))
            }
        };
        self.now.upstreams.insert(name.to_owned(), upstream);
        Ok(change)
    }

    /// The CAs that an upstream's servers must lead to, with a number that tells them from others.
    fn ca(&mut self, model: &model::Upstream) -> Result<Option<(Cas, u64)>, Problem> {
        let Some((tls, source)) = model.tls.as_ref().and_then(|tls| Some((tls, tls.ca.as_ref()?))) else {
            return Ok(None);
        };
        let digest = self.content(source);
        let known = self.now.cas.get(&digest).or_else(|| self.before.cas.get(&digest));
        let cas = match known {
            Some(known) => Arc::clone(known),
            None => {
                let place = tls.ca_place.as_ref().unwrap_or(&model.place);
                Arc::new(pem::read_chain(source, place)?.into_boxed_slice())
            }
        };
        self.now.cas.insert(digest, Arc::clone(&cas));
        let number = digest.first_chunk().map_or(1, |bytes| u64::from_be_bytes(*bytes));
        Ok(Some((cas, number)))
    }

    /// Of what can be read; what cannot is found out when it is needed.
    fn content(&mut self, source: &Source) -> Digest {
        let digest = |source: &Source| {
            let mut hasher = Sha256::new();
            match source.read() {
                Ok(bytes) => hasher.update(&bytes),
                Err(_) => hasher.update(format!("{source:?}").as_bytes()),
            }
            hasher.finish()
        };
        match source.path() {
            None => digest(source),
            Some(path) => *self.files.entry(path.clone()).or_insert_with(|| digest(source)),
        }
    }
}

/// What a snapshot changes of an upstream when it is put into service.
pub(crate) enum UpstreamChange {
    None,
    /// These are its servers now.
    Endpoints(Arc<Upstream>, crate::upstream::Endpoints),
    New(Arc<Upstream>),
}

impl ArtifactCache {
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    /// How much of this was not there before.
    pub(crate) fn made_since(&self, before: &Self) -> Made {
        Made {
            certificates: made(self.certificates.values(), before.certificates.values()),
            tls_contexts: made(self.contexts.values(), before.contexts.values()),
            route_tables: made(self.routers.values(), before.routers.values()),
            upstreams: made(self.upstreams.values(), before.upstreams.values()),
        }
    }
}

fn made<'a, T: 'a>(now: impl Iterator<Item = &'a Arc<T>>, before: impl Iterator<Item = &'a Arc<T>>) -> usize {
    let before: HashSet<_> = before.map(Arc::as_ptr).collect();
    now.filter(|part| !before.contains(&Arc::as_ptr(part))).count()
}
