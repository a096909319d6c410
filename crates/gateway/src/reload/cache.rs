//! Artifacts that snapshots are made of, kept from one to the next so that only what has changed is built again.

mod exporters;

use super::{control::RebuiltParts, upstream_change::UpstreamChange};
use crate::{
    http::{Authenticator, Authenticators, KeyFetchers, Limiters, Router},
    tls::{
        ChainTls, Identities, QuicStart, QuicTls,
        certificate::{Certificate, PrivateKey},
        pem, remote_key,
        resumption_backend::ResumptionBackend,
        stapling,
    },
    traces::Exporter,
    upstream::{Credentials, Names, Upstream, Upstreams},
};
use boring::{sha::Sha256, x509::X509};
use quadrille_acme::KeyServers;
use quadrille_config::{
    Diagnostic,
    model::{
        self, BasicAuth, CertificateSource, ClientAuth, KeyServerUse, KeySource, Keyless, Mode, OcspStapling,
        Place, RateLimit, RemoteKeys, RouteTable, Source, SpanCollector, Tls, TlsPolicy, UpstreamTls,
    },
};
use quadrille_engine::Engine;
use quadrille_keyless::client::Client;
use quadrille_ocsp::{Staple, Unaskable};
use std::{
    collections::{HashMap, HashSet},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

type Digest = [u8; 32];
type Cas = Arc<Box<[X509]>>;

/// Artifacts of a snapshot, by what they were made from.
#[derive(Clone, Default)]
pub(crate) struct ArtifactCache {
    clients: HashMap<ClientKey, Client>,
    certificates: HashMap<CertificateKey, Arc<Certificate>>,
    /// By certificate and issuer, so that what has been fetched outlives the files.
    staples: HashMap<Digest, Arc<Staple>>,
    contexts: HashMap<ContextKey, Arc<ChainTls>>,
    quic_contexts: HashMap<(ContextKey, Duration), Arc<QuicTls>>,
    quic_start: Option<(Identity<ResumptionBackend>, Arc<QuicStart>)>,
    routers: HashMap<Arc<RouteTable>, Arc<Router>>,
    limiters: Limiters,
    key_fetchers: KeyFetchers,
    authenticators: HashMap<(Arc<BasicAuth>, Digest), Arc<Authenticator>>,
    upstreams: Upstreams,
    exporters: HashMap<ExporterKey, Arc<Exporter>>,
    cas: HashMap<Digest, Cas>,
}

/// What connections to key servers were made from, without the fallback and what they are used for, which they do not
/// know.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ClientKey {
    settings: Keyless,
    contents: Vec<Digest>,
}

/// What a certificate was made from, with what its files held.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CertificateKey {
    source: CertificateSource,
    allow_weak_keys: bool,
    contents: Vec<Digest>,
}

/// What a TLS context was made from, with what its files held.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ContextKey {
    policy: TlsPolicy,
    mode: Mode,
    certificates: Vec<Identity<Certificate>>,
    resumption: Identity<ResumptionBackend>,
    contents: Vec<Digest>,
    awaited: Vec<String>,
    on_demand: bool,
}

/// What sends spans was made from, with what its files held.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ExporterKey {
    model: SpanCollector,
    upstream: Option<Identity<Upstream>>,
    contents: Vec<Digest>,
}

/// An artifact that equals only itself: it comes from a cache, which has one for equal settings.
struct Identity<T>(Arc<T>);

impl<T> Clone for Identity<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> PartialEq for Identity<T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl<T> Eq for Identity<T> {}

impl<T> Hash for Identity<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
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

    /// A certificate with its key.
    pub(crate) fn certificate(
        &mut self,
        source: &CertificateSource,
        allow_weak_keys: bool,
        engine: &Engine,
    ) -> Result<Arc<Certificate>, Diagnostic> {
        let contents = self.contents(source.sources());
        let key = CertificateKey { source: source.clone(), allow_weak_keys, contents };
        let known = self.now.certificates.get(&key).or_else(|| self.before.certificates.get(&key));
        let certificate = match known {
            Some(known) => Arc::clone(known),
            None => {
                let mut client = |settings: &Keyless, place: &Place| self.client(settings, place);
                let certificate = Certificate::load(source, allow_weak_keys, &mut client)?;
                certificate.key.prepare(engine);
                Arc::new(certificate)
            }
        };
        if let PrivateKey::Remote(remote) = &certificate.key
            && let KeySource::Keyless(settings) = &source.key
        {
            let key = self.client_key(settings);
            self.now.clients.insert(key, remote.client.clone());
        }
        self.now.certificates.insert(key, Arc::clone(&certificate));
        Ok(certificate)
    }

    /// What is fetched to be stapled to a certificate, and kept in this state directory; `None` if nothing is.
    ///
    /// # Errors
    /// It should be, and nobody can be asked.
    pub(crate) fn staple(
        &mut self,
        certificate: &Certificate,
        stapling: OcspStapling,
        state: Option<&Path>,
    ) -> Result<Option<Arc<Staple>>, Unaskable> {
        if !stapling::is_wanted(certificate, stapling) {
            return Ok(None);
        }
        let key = stapling::identity(certificate);
        let known = self.now.staples.get(&key).or_else(|| self.before.staples.get(&key));
        let staple = match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(stapling::new(certificate, &key, state)?),
        };
        self.now.staples.insert(key, Arc::clone(&staple));
        Ok(Some(staple))
    }

    /// The connections to these key servers.
    pub(crate) fn client(&mut self, settings: &Keyless, place: &Place) -> Result<Client, Diagnostic> {
        let key = self.client_key(settings);
        let known = self.now.clients.get(&key).or_else(|| self.before.clients.get(&key));
        match known {
            Some(known) => Ok(known.clone()),
            None => {
                let client = remote_key::client(settings, place)?;
                self.now.clients.insert(key, client.clone());
                Ok(client)
            }
        }
    }

    fn client_key(&mut self, settings: &Keyless) -> ClientKey {
        let settings = Keyless { fallback: None, usage: KeyServerUse::Always, ..settings.clone() };
        ClientKey { contents: self.contents(settings.sources()), settings }
    }

    /// TLS with these certificates.
    pub(crate) fn tls(
        &mut self,
        tls: &Tls,
        mode: Mode,
        identities: Identities<'_>,
        resumption: &Arc<ResumptionBackend>,
        engine: &Engine,
    ) -> Result<Arc<ChainTls>, Diagnostic> {
        let key = self.context_key(tls, mode, identities, resumption);
        let known = self.now.contexts.get(&key).or_else(|| self.before.contexts.get(&key));
        let context = match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(ChainTls::new(&tls.policy, mode, resumption, identities, engine)?),
        };
        self.now.contexts.insert(key, Arc::clone(&context));
        Ok(context)
    }

    /// TLS inside QUIC with these certificates, for connections that are forgotten when they are idle for so long.
    pub(crate) fn quic(
        &mut self,
        tls: &Tls,
        idle: Duration,
        identities: Identities<'_>,
        resumption: &Arc<ResumptionBackend>,
        engine: &Engine,
    ) -> Result<Arc<QuicTls>, Diagnostic> {
        let key = (self.context_key(tls, Mode::Http, identities, resumption), idle);
        let known = self.now.quic_contexts.get(&key).or_else(|| self.before.quic_contexts.get(&key));
        let context = match known {
            Some(known) => Arc::clone(known),
            None => Arc::new(QuicTls::new(&tls.policy, idle, resumption, identities, engine)?),
        };
        self.now.quic_contexts.insert(key, Arc::clone(&context));
        Ok(context)
    }

    /// What QUIC connections start with, whatever they go on with.
    pub(crate) fn quic_start(
        &mut self,
        resumption: &Arc<ResumptionBackend>,
    ) -> Result<Arc<QuicStart>, Diagnostic> {
        let key = Identity(Arc::clone(resumption));
        let known = [&self.now.quic_start, &self.before.quic_start].into_iter().flatten();
        let start = match known.into_iter().find(|(of, _)| *of == key) {
            Some((_, known)) => Arc::clone(known),
            None => Arc::new(QuicStart::new(resumption)?),
        };
        self.now.quic_start = Some((key, Arc::clone(&start)));
        Ok(start)
    }

    fn context_key(
        &mut self,
        tls: &Tls,
        mode: Mode,
        identities: Identities<'_>,
        resumption: &Arc<ResumptionBackend>,
    ) -> ContextKey {
        let contents = match &tls.policy.client_auth {
            ClientAuth::Off => Vec::new(),
            ClientAuth::Optional(check) | ClientAuth::Required(check) => self.contents(check.sources()),
        };
        ContextKey {
            policy: tls.policy.clone(),
            mode,
            certificates: identities.certificates.iter().cloned().map(Identity).collect(),
            resumption: Identity(Arc::clone(resumption)),
            contents,
            awaited: identities.awaited.to_vec(),
            on_demand: identities.on_demand.is_some(),
        }
    }

    /// These limits, with what is left of those that there were before.
    pub(crate) fn limiters<'l>(&mut self, limits: impl Iterator<Item = &'l RateLimit>) {
        for limit in limits {
            self.now.limiters.take(limit, &self.before.limiters);
        }
    }

    /// These keys of issuers, with what was fetched before.
    pub(crate) fn key_fetchers<'k>(&mut self, keys: impl Iterator<Item = &'k RemoteKeys>) {
        for remote in keys {
            self.now.key_fetchers.take(remote, &self.before.key_fetchers);
        }
    }

    /// These users, with what was found out about them if there were the same before.
    pub(crate) fn authenticators<'u>(
        &mut self,
        users: impl Iterator<Item = &'u Arc<BasicAuth>>,
    ) -> Result<Authenticators, Diagnostic> {
        let mut all = Authenticators::new();
        for model in users {
            let key = (Arc::clone(model), self.content(&model.users));
            let known = self.now.authenticators.get(&key).or_else(|| self.before.authenticators.get(&key));
            let users = match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(Authenticator::new(model)?),
            };
            self.now.authenticators.insert(key, Arc::clone(&users));
            all.insert(Arc::clone(model), users);
        }
        Ok(all)
    }

    /// These routes to the snapshot's upstreams.
    pub(crate) fn router(&mut self, table: &Arc<RouteTable>) -> Arc<Router> {
        self.limiters(table.rate_limits());
        let known = self.now.routers.get(table).or_else(|| self.before.routers.get(table));
        let router = match known.filter(|known| known.is_made_of(table, &self.now.upstreams)) {
            Some(known) => Arc::clone(known),
            None => Arc::new(Router::new(table, &self.now.upstreams, &self.now.limiters)),
        };
        self.now.routers.insert(Arc::clone(table), Arc::clone(&router));
        router
    }

    /// An upstream with the servers that it has in the model, or, if it is kept, had.
    pub(crate) fn upstream(
        &mut self,
        name: &str,
        model: &model::Upstream,
        names: &Names,
    ) -> Result<UpstreamChange, Vec<Diagnostic>> {
        let endpoints = Upstream::resolve(model, names);
        let cas: Result<Vec<_>, _> = model.transports().map(|tls| self.ca(tls, &model.place)).collect();
        let cas = cas.map_err(|problem| vec![problem])?;
        let contents = self.contents(model.transports().flatten().flat_map(UpstreamTls::sources));
        let before = self.before.upstreams.get(name).filter(|before| before.has_settings(model, &contents));
        let (upstream, change) = match before {
            Some(same) if same.has_endpoints(&endpoints) => (Arc::clone(same), UpstreamChange::None),
            Some(same) => (Arc::clone(same), UpstreamChange::Endpoints(Arc::clone(same), endpoints)),
            None => {
                let credentials = model.transports().zip(cas).map(|(tls, ca)| {
                    let certificate = tls.map_or(Ok(None), client_certificate)?;
                    Ok(Credentials { ca, certificate })
                });
                let credentials: Result<Vec<_>, Diagnostic> = credentials.collect();
                let new = credentials
                    .and_then(|credentials| Upstream::new(name, model, endpoints, &credentials, contents));
                let new = Arc::new(new.map_err(|problem| vec![problem])?);
                (Arc::clone(&new), UpstreamChange::New(new))
            }
        };
        self.now.upstreams.insert(name.to_owned(), upstream);
        Ok(change)
    }

    /// The CAs that an upstream's servers must lead to. `place` is the upstream's.
    fn ca(&mut self, tls: Option<&UpstreamTls>, place: &Place) -> Result<Option<Cas>, Diagnostic> {
        let Some((tls, source)) = tls.and_then(|tls| Some((tls, tls.ca.as_ref()?))) else {
            return Ok(None);
        };
        let digest = self.content(source);
        let known = self.now.cas.get(&digest).or_else(|| self.before.cas.get(&digest));
        let cas = match known {
            Some(known) => Arc::clone(known),
            None => {
                let place = tls.ca_place.as_ref().unwrap_or(place);
                Arc::new(pem::read_chain(source, place)?.into_boxed_slice())
            }
        };
        self.now.cas.insert(digest, Arc::clone(&cas));
        Ok(Some(cas))
    }

    fn contents<'s>(&mut self, sources: impl Iterator<Item = &'s Source>) -> Vec<Digest> {
        sources.map(|source| self.content(source)).collect()
    }

    /// Of what can be read; what cannot is found out when it is needed.
    fn content(&mut self, source: &Source) -> Digest {
        let digest = |source: &Source| {
            let mut hasher = Sha256::new();
            match source.read() {
                Ok(bytes) => hasher.update(&bytes),
                Err(_) => hasher.update(b"unreadable"),
            }
            hasher.finish()
        };
        match source.path() {
            None => digest(source),
            Some(path) => *self.files.entry(path.clone()).or_insert_with(|| digest(source)),
        }
    }
}

/// What is shown to an upstream's servers.
fn client_certificate(tls: &UpstreamTls) -> Result<Option<Certificate>, Diagnostic> {
    // Whether the key is strong enough is for the servers to say.
    let load = |source: &Arc<CertificateSource>| {
        Certificate::load(source, true, &mut |_, place| {
            Err(Diagnostic::new(place, "a client certificate's key is on this machine"))
        })
    };
    tls.certificate.as_ref().map(load).transpose()
}

impl ArtifactCache {
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.upstreams
    }

    pub(crate) fn limiters(&self) -> &Limiters {
        &self.limiters
    }

    pub(crate) fn key_fetchers(&self) -> &KeyFetchers {
        &self.key_fetchers
    }

    /// All that are fetched.
    pub(crate) fn staples(&self) -> Vec<Arc<Staple>> {
        self.staples.values().cloned().collect()
    }

    /// All connections to key servers, with what they were made from.
    pub(crate) fn key_servers(&self) -> KeyServers {
        KeyServers::new(self.clients.iter().map(|(key, client)| (key.settings.clone(), client.clone())))
    }

    fn has_client(&self, client: &Client) -> bool {
        self.clients.values().any(|known| known == client)
    }

    /// How much of this was not there before.
    pub(crate) fn made_since(&self, before: &Self) -> RebuiltParts {
        RebuiltParts {
            certificates: made(self.certificates.values(), before.certificates.values()),
            tls_contexts: made(self.contexts.values(), before.contexts.values())
                + made(self.quic_contexts.values(), before.quic_contexts.values()),
            route_tables: made(self.routers.values(), before.routers.values()),
            upstreams: made(self.upstreams.values(), before.upstreams.values()),
            key_server_pools: self.clients.values().filter(|client| !before.has_client(client)).count(),
        }
    }
}

fn made<'a, T: 'a>(now: impl Iterator<Item = &'a Arc<T>>, before: impl Iterator<Item = &'a Arc<T>>) -> usize {
    let before: HashSet<_> = before.map(Arc::as_ptr).collect();
    now.filter(|part| !before.contains(&Arc::as_ptr(part))).count()
}
