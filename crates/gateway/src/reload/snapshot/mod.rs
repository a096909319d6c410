//! Builds a snapshot from the model: reads certificates, resolves names, sets up TLS, and reports every problem.

mod certificates;
mod tracers;

use super::{
    cache::{ArtifactBuilder, ArtifactCache},
    control::RebuiltParts,
    status_source::{Served, ServedCertificate},
    upstream_change::UpstreamChange,
};
use crate::{
    http::{AccessStep, ErrorPages, HttpSettings, OwnHeaders},
    listener::{
        filter_chain::{ActiveListener, ChainConfig, FilterChain, Handler, PreparedChain, PreparedListener},
        matcher::FilterChainMatcher,
    },
    memory,
    tcp::TcpSettings,
    telemetry::{expiry::Expiry, sampling::Sampling},
    tls::{
        Identities, QuicTls,
        certificate::{files::Certificate, stapling},
        resumption_backend::ResumptionBackend,
    },
    traces::{TraceRules, Tracer},
    upstream::{Names, WeightedUpstreams},
};
use certificates::{OwnCertificates, granted, orders, refuse_unused, unusable_suites, without_fallback};
use quadrille_acme::{Answers, OnDemand};
use quadrille_config::{
    Diagnostic,
    model::{
        self, AcmeOrder, CertificateSource, Chain, ClientAuth, Domain, ErrorPage, Gateway, Http, KeySource,
        Listener, Mode, OcspStapling, Problem, ProxyProtocolIn, RequestIds, Serve, Tls, Version,
    },
};
use quadrille_engine::Engine;
use quadrille_ocsp::Staple;
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// Complete state of a configuration, ready to be put into service.
pub(crate) struct Snapshot {
    pub(crate) listeners: Vec<PreparedListener>,
    pub(crate) resumption: Arc<ResumptionBackend>,
    /// DNS names of endpoints, with their addresses.
    pub(crate) names: Names,
    /// Changes to upstreams.
    pub(crate) changes: Vec<UpstreamChange>,
    /// Artifacts that the next snapshot may reuse.
    pub(crate) cache: ArtifactCache,
    /// Parts that were not in the previous snapshot.
    pub(crate) made: RebuiltParts,
    /// Data for the admin pages.
    pub(crate) served: Served,
    /// Warnings about a valid configuration.
    pub(crate) warnings: Vec<String>,
}

/// Active parts, of which a snapshot takes over those that the model leaves unchanged. Empty before the first
/// snapshot.
#[derive(Default)]
pub(crate) struct ActiveParts {
    /// Listeners whose connections continue.
    pub(crate) listeners: Vec<Arc<ActiveListener>>,
    pub(crate) resumption: Option<Arc<ResumptionBackend>>,
    /// Artifacts of the previous snapshot.
    pub(crate) cache: Arc<ArtifactCache>,
    /// Known addresses of endpoint names.
    pub(crate) names: Names,
    /// Responses to ACME challenges, for the life of the process.
    pub(crate) answers: Arc<Answers>,
    /// Names requested by clients, for the life of the process.
    pub(crate) on_demand: Arc<OnDemand>,
}

impl Snapshot {
    /// Reads and checks everything that the model references.
    pub(crate) fn new(
        model: &Gateway,
        engine: &Engine,
        active: &ActiveParts,
    ) -> Result<Self, Vec<Diagnostic>> {
        let resumption = ResumptionBackend::open(&model.resumption, active.resumption.as_ref())?;
        let names = Names::of(model, &active.names);
        let mut problems = Vec::new();
        let mut builder = SnapshotBuilder {
            model,
            engine,
            resumption: &resumption,
            artifacts: ArtifactBuilder::new(&active.cache),
            answers: &active.answers,
            on_demand: &active.on_demand,
            granted: granted(model),
            tracer: None,
            shown: Vec::new(),
            awaited: BTreeSet::new(),
            warnings: names.unknown(model).into_iter().chain(memory::warning(&model.memory)).collect(),
        };
        builder.artifacts.note_named_cas(model);
        let acme = model.acme.as_ref();
        if let Some((acme, on_demand)) = acme.and_then(|acme| Some((acme, acme.on_demand.as_ref()?)))
            && let Some(servers) = &on_demand.keyless
        {
            problems.extend(builder.artifacts.client(servers, &acme.place).err());
        }
        let mut changes = Vec::new();
        for (name, upstream) in &model.upstreams {
            match builder.artifacts.upstream(name, upstream, &names) {
                Ok(change) => changes.push(change),
                Err(mut found) => problems.append(&mut found),
            }
        }
        let rules = model.tracing.clone().map(Box::new).map(TraceRules::Own);
        match rules.map(|rules| builder.tracer(rules, false)).transpose() {
            Ok(tracer) => builder.tracer = tracer,
            Err(problem) => problems.push(problem),
        }
        let mut listeners = Vec::new();
        let retained = ActiveListener::retained(&active.listeners, model.listeners.iter());
        for (listener, before) in model.listeners.iter().zip(retained) {
            match builder.listener(listener, before.as_deref()) {
                Ok(prepared) => listeners.push(prepared),
                Err(mut found) => problems.append(&mut found),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let awaited = std::mem::take(&mut builder.awaited).into_iter().collect();
        let expiries: Arc<[Expiry]> = builder.artifacts.expiries.into_iter().collect();
        let expired = expiries.iter().filter(|expiry| expiry.not_after < quadrille_ocsp::unix_now());
        builder.warnings.extend(expired.map(ToString::to_string));
        let served = Served::new(&builder.shown, awaited, builder.artifacts.now.upstreams(), expiries);
        let (cache, warnings) = (builder.artifacts.now, builder.warnings.into_iter().collect());
        let made = cache.made_since(&active.cache);
        Ok(Self { listeners, resumption, names, changes, cache, made, served, warnings })
    }
}

/// A snapshot under construction.
struct SnapshotBuilder<'a> {
    model: &'a Gateway,
    engine: &'a Engine,
    resumption: &'a Arc<ResumptionBackend>,
    artifacts: ArtifactBuilder<'a>,
    answers: &'a Arc<Answers>,
    on_demand: &'a Arc<OnDemand>,
    /// Certificates that were issued on demand.
    granted: Vec<Arc<CertificateSource>>,
    /// Tracer of all filter chains.
    tracer: Option<Arc<Tracer>>,
    shown: Vec<(&'a Listener, Vec<ServedCertificate>)>,
    /// Names and key types of certificates that are ordered and not yet issued.
    awaited: BTreeSet<String>,
    warnings: BTreeSet<String>,
}

impl<'a> SnapshotBuilder<'a> {
    fn listener(
        &mut self,
        listener: &'a Listener,
        before: Option<&ActiveListener>,
    ) -> Result<PreparedListener, Vec<Diagnostic>> {
        let mut problems = Vec::new();
        let matcher = FilterChainMatcher::new(listener)
            .map_err(|mut found| problems.append(&mut found))
            .unwrap_or_default();
        let mut known = before.map(|before| before.config().chains.clone()).unwrap_or_default();
        let mut chains = Vec::new();
        let mut shown = Vec::new();
        for chain in listener.all_chains() {
            let at = known.iter().position(|known| known.has_identity(&chain.name, &chain.accepts));
            let before = at.map(|at| known.swap_remove(at));
            match self.chain(listener, chain, before, &mut shown) {
                Ok(prepared) => chains.push(prepared),
                Err(mut found) => problems.append(&mut found),
            }
        }
        self.shown.push((listener, shown));
        if problems.is_empty() {
            let quic = listener.has_http3().then(|| self.artifacts.quic_start(self.resumption)).transpose();
            let quic = quic.map_err(|problem| vec![problem])?;
            Ok(PreparedListener { model: listener.clone(), chains, matcher, quic })
        } else {
            Err(problems)
        }
    }

    /// Loads the certificates of a filter chain. An ordered one may be missing or damaged until it is issued.
    fn certificates(&mut self, tls: &Tls) -> Result<OwnCertificates, Vec<Diagnostic>> {
        let mut own = OwnCertificates::default();
        let mut problems = Vec::new();
        let granted = if orders(tls) { self.granted.clone() } else { Vec::new() };
        for source in tls.certificates.iter().chain(&granted) {
            if let (KeySource::Keyless(servers), Some(_)) = (&source.key, &source.order) {
                // Key servers receive the request for the key before a certificate exists.
                problems.extend(self.artifacts.client(servers, &source.key_place).err());
            }
            let is_known = |order: &AcmeOrder| order.names.iter().all(|name| own.has(name));
            if source.order.as_ref().is_some_and(is_known) && granted.contains(source) {
                // The certificate was added to the configuration since it was granted.
                continue;
            }
            match (self.artifacts.certificate(source, tls.policy.allow_weak_keys, self.engine), &source.order)
            {
                (Ok(certificate), _) => {
                    own.staples.push(self.staple(&certificate, tls.policy.ocsp_stapling));
                    own.sources.push(Arc::clone(source));
                    own.certificates.push(certificate);
                }
                (Err(_), Some(order)) => {
                    let key_type = quadrille_config::enums::name(order.key_type);
                    self.awaited.insert(format!("{} ({key_type})", order.names.join(", ")));
                    own.awaited.extend(order.names.iter().cloned());
                }
                (Err(problem), None) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(own) } else { Err(problems) }
    }

    /// Returns the OCSP response to be stapled to a certificate. Its absence may cause a warning.
    fn staple(&mut self, certificate: &Certificate, stapling: OcspStapling) -> Option<Arc<Staple>> {
        let state = self.model.acme.as_ref().map(|acme| acme.state.as_path());
        let staple = self.artifacts.staple(certificate, stapling, state);
        if !matches!(staple, Ok(Some(_))) {
            self.warnings.extend(stapling::warning(certificate, staple.as_ref().err()));
        }
        staple.ok().flatten()
    }

    /// Builds a filter chain, which replaces the previous one, if there was one.
    fn chain(
        &mut self,
        listener: &Listener,
        chain: &Chain,
        before: Option<Arc<FilterChain>>,
        shown: &mut Vec<ServedCertificate>,
    ) -> Result<PreparedChain, Vec<Diagnostic>> {
        let (engine, resumption) = (self.engine, self.resumption);
        let own = chain.tls.as_ref().map(|tls| self.certificates(tls)).transpose()?.unwrap_or_default();
        let OwnCertificates { sources, certificates, staples, awaited } = own;
        refuse_unused(chain.tls.as_deref(), &sources, &certificates)?;
        let answers = self.answers;
        let is_on_demand = self.model.acme.as_ref().is_some_and(|acme| acme.on_demand.is_some());
        let on_demand = chain.tls.as_ref().filter(|tls| is_on_demand && orders(tls)).map(|_| self.on_demand);
        let identities = Identities {
            certificates: &certificates,
            staples: &staples,
            awaited: &awaited,
            on_demand,
            answers,
        };
        let tls = chain
            .tls
            .as_ref()
            .map(|tls| self.artifacts.tls(tls, chain.mode(), identities, resumption, engine));
        let tls = tls.transpose().map_err(|problem| vec![problem])?;
        let quic = self.quic(listener, chain, identities).map_err(|problem| vec![problem])?;
        self.warnings.extend(certificates.iter().flat_map(|certificate| certificate.warnings.clone()));
        self.warnings.extend(without_fallback(&certificates, &awaited));
        if chain.http().is_some_and(|http| http.envoy_headers.is_none()) {
            // Meshes list the suites of all kinds of certificates.
            self.warnings.extend(unusable_suites(chain, &certificates));
        }
        let client_auth = chain.tls.as_ref().map(|tls| &tls.policy.client_auth);
        if let Some(ClientAuth::Optional(check) | ClientAuth::Required(check)) = client_auth {
            self.artifacts.note_client_check(check);
        }
        let handler = match &chain.serve {
            Serve::Http(http) => Handler::Http(Arc::new(HttpSettings {
                router: self.artifacts.router(&http.routes),
                paths: http.paths,
                access: self.access(chain, http)?,
                compared_access: http.envoy_headers.is_none().then(|| http.access.clone()),
                own_headers: OwnHeaders::of(http),
                response_headers: (!http.response_headers.is_empty())
                    .then(|| Arc::from(&http.response_headers[..])),
                error_pages: ErrorPages::read(&http.error_pages).map_err(|problem| vec![problem])?,
                route_pages: route_pages(http).map_err(|problem| vec![problem])?,
                local_replies: http.local_replies.clone(),
                limits: http.limits.clone(),
                request_ids: http.request_ids.or(self.model.request_ids.then_some(RequestIds::FOR_SERVERS)),
                forwarded_certificate: http.forwarded_certificate,
                strip_port: http.strip_port,
                upgrades: Arc::clone(&http.upgrades),
                abort_on_close: http.abort_on_close,
                envoy_headers: http.envoy_headers.clone(),
                trusted_proxies: listener.trusted_proxies.clone(),
                tracer: self.http_tracer(http).map_err(|problem| vec![problem])?,
                // HTTP-01 challenges are never requested over TLS.
                answers: chain.tls.is_none().then(|| Arc::clone(self.answers)),
                alt_svc: chain.http3.as_ref().map(|http3| http3.alt_svc.clone()),
            })),
            Serve::Tcp(to) => Handler::Tcp(TcpSettings {
                to: WeightedUpstreams::new(to, self.artifacts.now.upstreams()),
                tracer: self.tracer.clone(),
            }),
        };
        let config_before = before.as_ref().map(|before| before.config());
        let same = config_before.filter(|before| {
            before.sampling.follows(self.model.sampling) && before.same_names(tls.as_ref(), &handler)
        });
        let sampling = match same {
            Some(before) => Arc::clone(&before.sampling),
            None => Arc::new(Sampling::new(self.model.sampling, sampled_names(&certificates, chain))),
        };
        let all = certificates.into_iter().zip(staples).zip(sources);
        shown.extend(all.map(|((certificate, staple), source)| ServedCertificate {
            certificate,
            staple,
            ordered: source.order.is_some(),
        }));
        let config = Arc::new(ChainConfig {
            tls,
            quic,
            handler,
            access: chain.access.clone(),
            timeouts: chain.timeouts.clone(),
            sampling,
        });
        let chain = before
            .unwrap_or_else(|| Arc::new(FilterChain::new(&chain.name, &chain.accepts, Arc::clone(&config))));
        Ok(PreparedChain { chain, config })
    }
}

impl SnapshotBuilder<'_> {
    /// Builds the access steps of requests: the rules of connections, then the steps for requests.
    fn access(&mut self, chain: &Chain, http: &Http) -> Result<Vec<AccessStep>, Vec<Diagnostic>> {
        let of_connections = chain.access.iter().cloned().map(model::AccessStep::Rules);
        let mut steps = Vec::with_capacity(chain.access.len() + http.access.len());
        let mut warnings = Vec::new();
        let configured = http.access.iter();
        let limiters = configured.flat_map(|step| step.rate_limits().iter().chain(step.limits_of_rules()));
        self.artifacts.limiters(limiters);
        let issuers = http.access.iter().flat_map(model::AccessStep::token_issuers);
        self.artifacts.key_fetchers(issuers.filter_map(|issuer| issuer.keys.remote()));
        let users = self.artifacts.authenticators(http.basic_auths()).map_err(|problem| vec![problem])?;
        for step in of_connections.chain(http.access.iter().cloned()) {
            let now = &self.artifacts.now;
            let (upstreams, limiters, fetchers) = (now.upstreams(), now.limiters(), now.key_fetchers());
            let made = AccessStep::new(&step, upstreams, limiters, fetchers, &users, &mut warnings);
            steps.push(made.map_err(|problem| vec![problem])?);
        }
        self.warnings.extend(warnings);
        Ok(steps)
    }

    /// Builds the TLS context of a filter chain's HTTP/3, if enabled.
    fn quic(
        &mut self,
        listener: &Listener,
        chain: &Chain,
        identities: Identities<'_>,
    ) -> Result<Option<Arc<QuicTls>>, Diagnostic> {
        if chain.http3.is_none() {
            return Ok(None);
        }
        let refused = |message: &str, remedy: &str| {
            let problem = Problem::new(message, format!("{remedy}, or use `http3: off`"));
            Err(Diagnostic::new(&chain.place, problem))
        };
        let Some(tls) = chain.tls.as_ref().filter(|_| chain.mode() == Mode::Http) else {
            return refused("HTTP/3 requires `mode: http` with TLS", "configure both for the listener");
        };
        if tls.policy.max < Version::Tls13 {
            return refused("HTTP/3 needs TLS 1.3", "allow it with `tls.max`");
        }
        if listener.proxy_protocol == ProxyProtocolIn::Required {
            return refused("the PROXY protocol does not support HTTP/3", "set `proxy_protocol: off`");
        }
        let idle = chain.timeouts.idle;
        self.artifacts.quic(tls, idle, identities, self.resumption, self.engine).map(Some)
    }
}

/// Reads the error pages of routes that have their own, followed by those of the chain, by host and route. Routes
/// with the same pages share them.
fn route_pages(http: &Http) -> Result<Vec<Vec<Option<Arc<ErrorPages>>>>, Diagnostic> {
    let mut read = HashMap::<&[ErrorPage], Arc<ErrorPages>>::new();
    let mut by_host = Vec::new();
    for host in &http.routes.hosts {
        let mut by_route = Vec::new();
        for own in host.routes.iter().map(|route| &route.error_pages[..]) {
            if !own.is_empty() && !read.contains_key(own) {
                let all = [own, &http.error_pages].concat();
                read.extend(ErrorPages::read(&all)?.map(|pages| (own, pages)));
            }
            by_route.push(read.get(own).cloned());
        }
        by_host.push(by_route);
    }
    Ok(if read.is_empty() { Vec::new() } else { by_host })
}

/// Returns the names under which a chain's handshakes are counted: those of its certificates, and those of its routes
/// if the chain accepts any name.
fn sampled_names<'a>(
    certificates: &'a [Arc<Certificate>],
    chain: &'a Chain,
) -> impl Iterator<Item = String> + 'a {
    let of_certificates = certificates.iter().flat_map(|certificate| certificate.names.iter().cloned());
    let own = chain.accepts.server_names.iter().cloned();
    let hosts = match &chain.serve {
        Serve::Http(http) if chain.accepts.server_names.is_empty() => &http.routes.hosts[..],
        _ => &[],
    };
    let of_routes = hosts.iter().flat_map(|host| &host.domains).filter_map(|domain| match domain {
        Domain::Exact(host) => Some(host.clone()),
        Domain::Below(parent) => Some(format!("*.{parent}")),
        Domain::Suffix(_) | Domain::Prefix(_) | Domain::Any => None,
    });
    of_certificates.chain(own).chain(of_routes)
}
