//! Tests that a reload rebuilds exactly the parts that depend on the change, for every leaf of the model, one at a
//! time.
//!
//! The walks destructure each struct of the model completely: a new field does not compile until the walk specifies
//! what a change of it rebuilds.

mod listener;
mod model;
mod route;
mod upstream;

use super::{
    control::RebuiltParts,
    snapshot::{ActiveParts, Snapshot},
};
use crate::process::engine::idle;
use model::Files;
use quadrille_config::model::{
    AccessLog, Acme, AcmeChallenge, AcmeFleet, AcmeOnDemand, Admin, AdminSocket, BackendChoice,
    CollectorEndpoint, CollectorServers, EngineSettings, ExternalAccount, Gateway, Http3, LogFields,
    LogFormat, LogLayout, MemoryLimit, MemorySize, MemoryStages, ProxyProtocolIn, Resolver, Resumption,
    Sampling, SessionCache, Source, SpanCollector, Syslog, SyslogServer, TicketKeys, Tracing, UnixAccess,
};
use std::{fmt::Debug, num::NonZeroUsize, sync::Arc, time::Duration};

const NOTHING: RebuiltParts =
    RebuiltParts { certificates: 0, tls_contexts: 0, route_tables: 0, upstreams: 0, key_server_pools: 0 };
const TLS_CONTEXT: RebuiltParts = RebuiltParts { tls_contexts: 1, ..NOTHING };
/// The TLS contexts of both chains: they hold the ticket keys and the session store.
const TLS_CONTEXTS: RebuiltParts = RebuiltParts { tls_contexts: 2, ..NOTHING };
const CERTIFICATE: RebuiltParts = RebuiltParts { certificates: 1, ..TLS_CONTEXT };
const KEY_SERVER_POOL: RebuiltParts = RebuiltParts { key_server_pools: 1, ..CERTIFICATE };
const ROUTE_TABLE: RebuiltParts = RebuiltParts { route_tables: 1, ..NOTHING };
const UPSTREAM: RebuiltParts = RebuiltParts { upstreams: 1, ..NOTHING };
const UPSTREAM_AND_ROUTE_TABLE: RebuiltParts = RebuiltParts { upstreams: 1, ..ROUTE_TABLE };

/// A duration that no leaf has in [`model::gateway`].
const TIME: Duration = Duration::from_millis(1234);
const COUNT: NonZeroUsize = NonZeroUsize::MIN.saturating_add(6);

#[test]
fn a_leaf_rebuilds_the_parts_that_name_it() {
    let files = Files::new();
    let original = model::gateway(&files);
    let engine = idle().expect("an engine");
    let first = Snapshot::new(&original, &engine, &ActiveParts::default()).expect("a snapshot");
    let all =
        RebuiltParts { certificates: 2, tls_contexts: 2, route_tables: 1, upstreams: 2, key_server_pools: 1 };
    assert_eq!(first.made, all);
    let active = ActiveParts {
        listeners: Vec::new(),
        resumption: Some(Arc::clone(&first.resumption)),
        cache: Arc::new(first.cache),
        names: first.names,
        answers: Arc::default(),
        on_demand: Arc::default(),
    };
    let rebuilt = |model: &Gateway| Snapshot::new(model, &engine, &active).map(|snapshot| snapshot.made);
    assert_eq!(rebuilt(&original).expect("a snapshot"), NOTHING);
    for index in 0.. {
        let mut model = original.clone();
        let mut leaves = Leaves { wanted: index, seen: 0, parts: NOTHING, changed: None };
        gateway(&mut model, &mut leaves);
        let Some((name, expected)) = leaves.changed else { break };
        let made = rebuilt(&model).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(made, expected, "{name}");
    }
}

#[test]
fn http3_makes_the_contexts_of_its_chain() {
    let files = Files::new();
    let mut original = model::gateway(&files);
    original.listeners[0].proxy_protocol = ProxyProtocolIn::Off;
    let engine = idle().expect("an engine");
    let first = Snapshot::new(&original, &engine, &ActiveParts::default()).expect("a snapshot");
    let active = ActiveParts {
        listeners: Vec::new(),
        resumption: Some(Arc::clone(&first.resumption)),
        cache: Arc::new(first.cache),
        names: first.names,
        answers: Arc::default(),
        on_demand: Arc::default(),
    };
    let made = |model: &Gateway| Snapshot::new(model, &engine, &active).map(|snapshot| snapshot.made);
    original.listeners[0].chains[0].http3 = Some(Http3::default());
    assert_eq!(made(&original).expect("a snapshot"), TLS_CONTEXT);
    original.listeners[0].chains[0].http3 = None;
    assert_eq!(made(&original).expect("a snapshot"), NOTHING);
}

/// A walk over all leaves of a model, which changes one of them.
struct Leaves {
    wanted: usize,
    seen: usize,
    /// Parts that the following leaves rebuild.
    parts: RebuiltParts,
    /// The changed leaf, and the parts that it rebuilds.
    changed: Option<(String, RebuiltParts)>,
}

impl Leaves {
    /// Sets the parts that the following leaves rebuild.
    fn rebuild(&mut self, parts: RebuiltParts) -> &mut Self {
        self.parts = parts;
        self
    }

    /// Visits a leaf, and changes it to `other` if it is the wanted one.
    fn set<T: PartialEq + Debug>(&mut self, name: &str, leaf: &mut T, other: T) {
        if self.seen == self.wanted {
            assert_ne!(*leaf, other, "{name} does not change");
            *leaf = other;
            self.changed = Some((name.to_owned(), self.parts));
        }
        self.seen += 1;
    }

    fn flip(&mut self, name: &str, leaf: &mut bool) {
        let other = !*leaf;
        self.set(name, leaf, other);
    }

    /// Visits a file; the alternative has the same name with the suffix `.other`.
    fn source(&mut self, name: &str, leaf: &mut Source) {
        let path = leaf.path().expect("a file");
        let other = Source::File(Files::other(path));
        self.set(name, leaf, other);
    }
}

fn gateway(model: &mut Gateway, leaves: &mut Leaves) {
    let Gateway {
        listeners,
        upstreams,
        resolver,
        engine,
        resumption,
        acme,
        sampling,
        admin,
        threads,
        memory,
        lame_duck,
        drain_timeout,
        access_log,
        access_log_fields,
        access_log_syslog,
        access_log_format,
        request_ids,
        tracing,
    } = model;
    for one in listeners {
        listener::listener(one, leaves);
    }
    for (name, one) in upstreams {
        let named_by_routes = name == model::ROUTED;
        upstream::upstream(one, if named_by_routes { UPSTREAM_AND_ROUTE_TABLE } else { UPSTREAM }, leaves);
    }
    self::resumption(resumption, leaves);
    leaves.rebuild(NOTHING);
    let Resolver { servers, timeout } = resolver;
    leaves.set("resolver.servers", servers, vec![([127, 0, 0, 1], 1).into()]);
    leaves.set("resolver.timeout", timeout, TIME);
    self::engine(engine, leaves);
    if let Some(Sampling { one_in, per_second }) = sampling {
        leaves.set("sampling.one_in", one_in, COUNT);
        leaves.set("sampling.per_second", per_second, COUNT);
    }
    leaves.set("sampling", sampling, None);
    if let Some(Admin { address, hosts, actions, socket, place: _ }) = admin {
        leaves.set("admin.address", address, Some(([127, 0, 0, 1], 1).into()));
        leaves.set("admin.hosts", hosts, vec!["other.example".into()]);
        leaves.flip("admin.actions", actions);
        let (path, access) = ("admin.sock".into(), UnixAccess::default());
        leaves.set(
            "admin.socket",
            socket,
            Some(AdminSocket { path, access, users: Vec::new(), place: model::place() }),
        );
    }
    leaves.set("admin", admin, None);
    acme_account(acme.as_mut().expect("an account"), leaves);
    leaves.set("acme", acme, None);
    leaves.set("threads", threads, Some(COUNT));
    let MemoryLimit { size, stages: MemoryStages { scarce, refusing, full } } = memory;
    leaves.set("limits.memory", size, MemorySize::Unlimited);
    leaves.set("limits.memory.scarce", scarce, 7);
    leaves.set("limits.memory.refusing", refusing, 7);
    leaves.set("limits.memory.full", full, 7);
    leaves.set("lame_duck", lame_duck, TIME);
    leaves.set("drain_timeout", drain_timeout, TIME);
    leaves.set("access_log", access_log, AccessLog::Stdout);
    leaves.set("access_log_fields", access_log_fields, LogFields::NONE);
    let syslog = Syslog { server: SyslogServer::Unix("log".into()), facility: 1, tag: "a".into() };
    leaves.set("access_log.syslog", access_log_syslog, Some(syslog));
    let format = LogFormat { layout: LogLayout::Json(Vec::new()), headers: Vec::new() };
    leaves.set("access_log.format", access_log_format, Some(format.into()));
    leaves.flip("request_ids", request_ids);
    let endpoint = CollectorEndpoint { host: "127.0.0.1".into(), port: 1, tls: None };
    let servers = CollectorServers::Endpoint(Box::new(endpoint));
    let other = Tracing { parts: 7, ..Tracing::new(SpanCollector::new(servers, model::place())) };
    leaves.set("tracing", tracing, Some(other));
}

/// Settings that are fixed until the process ends do not affect a snapshot.
fn engine(settings: &mut EngineSettings, leaves: &mut Leaves) {
    let EngineSettings { backend, poll_delay, latency_budget, batch, threads, queue, key_exchange } =
        settings;
    leaves.set("engine.backend", backend, BackendChoice::Scalar);
    leaves.set("engine.poll_delay", poll_delay, TIME);
    leaves.set("engine.latency_budget", latency_budget, TIME);
    leaves.set("engine.batch", batch, COUNT);
    leaves.set("engine.threads", threads, Some(COUNT));
    leaves.set("engine.queue", queue, COUNT);
    leaves.flip("engine.key_exchange", key_exchange);
}

/// The account only determines the orders; issued certificates are files. A snapshot depends only on orders on
/// demand.
fn acme_account(model: &mut Acme, leaves: &mut Leaves) {
    let Acme {
        email,
        directory,
        ca_file,
        state,
        challenges,
        dns_hook,
        external_account,
        fleet,
        on_demand,
        place: _,
    } = model;
    leaves.set("acme.email", email, Some("other@example.com".into()));
    leaves.set("acme.directory", directory, "https://other.example/".into());
    leaves.set("acme.ca_file", ca_file, Some(("ca.pem".into(), model::place())));
    leaves.set("acme.state", state, "other".into());
    leaves.set("acme.challenges", challenges, vec![AcmeChallenge::Http01]);
    leaves.set("acme.dns_hook", dns_hook, Some(("hook".into(), model::place())));
    let external = ExternalAccount { id: "id".into(), key_file: ("mac".into(), model::place()) };
    leaves.set("acme.external_account", external_account, Some(external));
    leaves.set("acme.fleet", fleet, AcmeFleet::Off);
    let asked = AcmeOnDemand::new("http://ask.example/".into());
    leaves.rebuild(TLS_CONTEXTS).set("acme.on_demand", on_demand, Some(asked));
    leaves.rebuild(NOTHING);
}

fn resumption(settings: &mut Resumption, leaves: &mut Leaves) {
    let Resumption {
        tickets,
        cache,
        cache_size,
        lifetime,
        rotation,
        early_data,
        lookup_timeout,
        fleet_secret,
        redis_password,
        redis_ca,
    } = settings;
    leaves.rebuild(TLS_CONTEXTS);
    leaves.set("resumption.tickets", tickets, TicketKeys::Local);
    let other = "redis://127.0.0.1:2".parse().expect("an address");
    leaves.set("resumption.cache", cache, SessionCache::Redis(other, model::place()));
    leaves.set("resumption.cache_size", cache_size, 7);
    leaves.set("resumption.lifetime", lifetime, TIME);
    leaves.set("resumption.rotation", rotation, TIME);
    leaves.flip("resumption.early_data", early_data);
    leaves.set("resumption.lookup_timeout", lookup_timeout, TIME);
    let (secret, _) = fleet_secret.as_mut().expect("a secret");
    leaves.source("resumption.fleet_secret", secret);
    let (password, _) = redis_password.as_mut().expect("a password");
    leaves.source("resumption.redis_password", password);
    let (ca, _) = redis_ca.as_mut().expect("a CA");
    leaves.set("resumption.redis_ca", ca, "other.pem".into());
}
