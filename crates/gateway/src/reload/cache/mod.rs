//! Artifacts of snapshots, kept from one to the next so that only changed ones are rebuilt.

mod expiries;
mod exporters;

use super::{control::RebuiltParts, upstream_change::UpstreamChange};
use crate::{
    http::{Authenticator, Authenticators, KeyFetchers, Limiters, Router},
    telemetry::expiry::{Expiry, ExpiryKind},
    tls::{
        ChainTls, Identities, QuicStart, QuicTls,
        certificate::{
            files::{Certificate, PrivateKey},
            stapling,
        },
        key::remote_key,
        pem,
        resumption_backend::ResumptionBackend,
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
    collections::{BTreeSet, HashMap, HashSet},
    hash::{Hash, Hasher},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

type Digest = [u8; 32];
type Cas = Arc<Box<[X509]>>;
/// Names of certificates or issuers with expiry times.
type ExpiryTimes = Arc<[(String, i64)]>;

/// Artifacts of a snapshot, each with its inputs as key.
#[derive(Clone, Default)]
pub(crate) struct ArtifactCache {
    clients: HashMap<ClientKey, Client>,
    certificates: HashMap<CertificateKey, Arc<Certificate>>,
    /// OCSP responses by certificate and issuer, so that a fetched response is kept when the files change.
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
    /// Names and expiry times in the files of CAs and revocation lists.
    expiries: HashMap<(ExpiryKind, Digest), ExpiryTimes>,
}

/// Inputs of connections to key servers, without the fallback and the use, on which the connections do not depend.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ClientKey {
    settings: Keyless,
    contents: Vec<Digest>,
}

/// Inputs of a certificate, with the contents of its files.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CertificateKey {
    source: CertificateSource,
    allow_weak_keys: bool,
    contents: Vec<Digest>,
}

/// Inputs of a TLS context, with the contents of its files.
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

/// Inputs of a span exporter, with the contents of its files.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ExporterKey {
    model: SpanCollector,
    upstream: Option<Identity<Upstream>>,
    contents: Vec<Digest>,
}

/// An artifact compared by identity: the cache holds only one for equal settings.
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

/// Collects a snapshot's artifacts: those of the previous snapshot, or new ones.
pub(crate) struct ArtifactBuilder<'a> {
    before: &'a ArtifactCache,
    pub(crate) now: ArtifactCache,
    /// Digests of file contents, so that a file that is referenced repeatedly is read once.
    files: HashMap<PathBuf, Digest>,
    /// Expiry times of lists and CAs.
    pub(crate) expiries: BTreeSet<Expiry>,
}

impl<'a> ArtifactBuilder<'a> {
    pub(crate) fn new(before: &'a ArtifactCache) -> Self {
        Self { before, now: ArtifactCache::default(), files: HashMap::new(), expiries: BTreeSet::new() }
    }

    /// Returns a certificate with its key.
    pub(crate) fn certificate(
        &mut self,
        source: &CertificateSource,
        allow_weak_keys: bool,
        engine: &Engine,
    ) -> Result<Arc<Certificate>, Diagnostic> {
        let contents = self.contents(source.sources());
        let key = CertificateKey { source: source.clone(), allow_weak_keys, contents };
        let certificate = match known(&self.now.certificates, &self.before.certificates, &key) {
            Some(known) => known,
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
            self.note_key_servers(settings);
        }
        self.note_ocsp_file(source, &certificate);
        self.now.certificates.insert(key, Arc::clone(&certificate));
        Ok(certificate)
    }

    /// Returns the OCSP response to be stapled to a certificate, which is kept in this state directory; `None`
    /// without stapling.
    ///
    /// # Errors
    /// Fails if stapling is required, but there is no responder to query.
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
        let make = || stapling::new(certificate, &key, state).map(Arc::new);
        keep(&mut self.now.staples, &self.before.staples, key, make).map(Some)
    }

    /// Returns the connections to these key servers.
    pub(crate) fn client(&mut self, settings: &Keyless, place: &Place) -> Result<Client, Diagnostic> {
        let key = self.client_key(settings);
        self.note_key_servers(settings);
        keep(&mut self.now.clients, &self.before.clients, key, || remote_key::client(settings, place))
    }

    fn client_key(&mut self, settings: &Keyless) -> ClientKey {
        let settings = Keyless { fallback: None, usage: KeyServerUse::Always, ..settings.clone() };
        ClientKey { contents: self.contents(settings.sources()), settings }
    }

    /// Returns the TLS context with these certificates.
    pub(crate) fn tls(
        &mut self,
        tls: &Tls,
        mode: Mode,
        identities: Identities<'_>,
        resumption: &Arc<ResumptionBackend>,
        engine: &Engine,
    ) -> Result<Arc<ChainTls>, Diagnostic> {
        let key = self.context_key(tls, mode, identities, resumption);
        let make = || ChainTls::new(&tls.policy, mode, resumption, identities, engine).map(Arc::new);
        keep(&mut self.now.contexts, &self.before.contexts, key, make)
    }

    /// Returns the TLS context of QUIC with these certificates, for connections with this idle timeout.
    pub(crate) fn quic(
        &mut self,
        tls: &Tls,
        idle: Duration,
        identities: Identities<'_>,
        resumption: &Arc<ResumptionBackend>,
        engine: &Engine,
    ) -> Result<Arc<QuicTls>, Diagnostic> {
        let key = (self.context_key(tls, Mode::Http, identities, resumption), idle);
        let make = || QuicTls::new(&tls.policy, idle, resumption, identities, engine).map(Arc::new);
        keep(&mut self.now.quic_contexts, &self.before.quic_contexts, key, make)
    }

    /// Returns the initial context of QUIC connections, before their filter chain is known.
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

    /// Adds these rate limits, with the state of the previous ones.
    pub(crate) fn limiters<'l>(&mut self, limits: impl Iterator<Item = &'l RateLimit>) {
        for limit in limits {
            self.now.limiters.take(limit, &self.before.limiters);
        }
    }

    /// Adds these key sets of token issuers, with the keys that were fetched before.
    pub(crate) fn key_fetchers<'k>(&mut self, keys: impl Iterator<Item = &'k RemoteKeys>) {
        for remote in keys {
            self.now.key_fetchers.take(remote, &self.before.key_fetchers);
        }
    }

    /// Returns authenticators for these users, with the cached results of unchanged ones.
    pub(crate) fn authenticators<'u>(
        &mut self,
        users: impl Iterator<Item = &'u Arc<BasicAuth>>,
    ) -> Result<Authenticators, Diagnostic> {
        let mut all = Authenticators::new();
        for model in users {
            let key = (Arc::clone(model), self.content(&model.users));
            let make = || Authenticator::new(model).map(Arc::new);
            let users = keep(&mut self.now.authenticators, &self.before.authenticators, key, make)?;
            all.insert(Arc::clone(model), users);
        }
        Ok(all)
    }

    /// Returns the router for these routes to the snapshot's upstreams.
    pub(crate) fn router(&mut self, table: &Arc<RouteTable>) -> Arc<Router> {
        self.limiters(table.rate_limits());
        let known = known(&self.now.routers, &self.before.routers, table);
        let router = known
            .filter(|known| known.is_made_of(table, &self.now.upstreams))
            .unwrap_or_else(|| Arc::new(Router::new(table, &self.now.upstreams, &self.now.limiters)));
        self.now.routers.insert(Arc::clone(table), Arc::clone(&router));
        router
    }

    /// Returns an upstream with the endpoints of the model; if the upstream is kept, its endpoints may change.
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

    /// Reads the CAs that verify an upstream's endpoints. `place` is the upstream's.
    fn ca(&mut self, tls: Option<&UpstreamTls>, place: &Place) -> Result<Option<Cas>, Diagnostic> {
        let Some((tls, source)) = tls.and_then(|tls| Some((tls, tls.ca.as_ref()?))) else {
            return Ok(None);
        };
        let digest = self.content(source);
        let place = tls.ca_place.as_ref().unwrap_or(place);
        let make = || Ok(Arc::new(pem::read_chain(source, place)?.into_boxed_slice()));
        let cas = keep(&mut self.now.cas, &self.before.cas, digest, make)?;
        self.note_cas(source, &cas);
        Ok(Some(cas))
    }

    fn contents<'s>(&mut self, sources: impl Iterator<Item = &'s Source>) -> Vec<Digest> {
        sources.map(|source| self.content(source)).collect()
    }

    /// Returns the digest of a source's content. A read error is reported when the content is used.
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

/// Returns the artifact with these inputs, of this snapshot or of the previous one.
fn known<K: Eq + Hash, V: Clone>(now: &HashMap<K, V>, before: &HashMap<K, V>, key: &K) -> Option<V> {
    now.get(key).or_else(|| before.get(key)).cloned()
}

/// Keeps the artifact with these inputs in this snapshot, and makes it if it is new.
fn keep<K: Eq + Hash, V: Clone, E>(
    now: &mut HashMap<K, V>,
    before: &HashMap<K, V>,
    key: K,
    make: impl FnOnce() -> Result<V, E>,
) -> Result<V, E> {
    let artifact = known(now, before, &key).map_or_else(make, Ok)?;
    now.insert(key, artifact.clone());
    Ok(artifact)
}

/// Loads the client certificate for an upstream's endpoints.
fn client_certificate(tls: &UpstreamTls) -> Result<Option<Certificate>, Diagnostic> {
    tls.certificate.as_deref().map(Certificate::load_for_client).transpose()
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

    /// Returns all fetched OCSP responses.
    pub(crate) fn staples(&self) -> Vec<Arc<Staple>> {
        self.staples.values().cloned().collect()
    }

    /// Returns all connections to key servers, with their settings.
    pub(crate) fn key_servers(&self) -> KeyServers {
        KeyServers::new(self.clients.iter().map(|(key, client)| (key.settings.clone(), client.clone())))
    }

    fn has_client(&self, client: &Client) -> bool {
        self.clients.values().any(|known| known == client)
    }

    /// Counts the parts that were not in the previous cache.
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
