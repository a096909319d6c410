//! The running gateway: start, reload, drain.
//!
//! - `event_loops`, `logs`: event loops and the access log; `deadline`: deadlines of the main loop;
//!   `check`, `expiries`: checks without serving, and warnings about what expires.
//! - `reloads`; `drain`: shutdown; `replacement`, `successor`: replacement by a new process.

mod check;
pub(crate) mod deadline;
mod drain;
mod event_loops;
pub(crate) mod expiries;
mod logs;
mod reloads;
mod replacement;
mod successor;

use crate::{
    admin::{Actions, Admin, AdminEndpoint, DrainEndpoint, ReloadResult},
    admission::EngineWatch,
    configuration_source::ConfigurationSource,
    handover::Inherited,
    listener::{filter_chain::ActiveListener, opened_sockets::OpenedSockets, redirection::Destinations},
    memory,
    process::{
        background, certificates::Certificates, engine, file_limits, signals::Signals, staples::Staples,
        start_failure,
    },
    reload::{
        cache::ArtifactCache,
        control::{Applied, Command, ListenerDrain, Updates},
        snapshot::{ActiveParts, Snapshot},
        status_source::Served,
        watch::Watch,
    },
    telemetry::{
        configuration_warnings, history, metrics,
        statistics::{self, Statistics},
    },
    tls::resumption_backend::ResumptionBackend,
    upstream::NameRefresh,
    worker::{Assignment, ListenerSocket, WorkerThread},
};
use arc_swap::ArcSwap;
use event_loops::{admission, start_workers};
use expiries::Expiries;
use quadrille_config::{
    Diagnostic,
    model::{Gateway, Listener},
};
use quadrille_engine::Engine;
use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};
use successor::Starting;
use tokio::sync::{mpsc, oneshot, watch};

pub use check::{Checked, check};

/// Addresses of a gateway that has started.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Addresses of listeners with sockets, in the configuration's order, with actual ports in place of 0.
    pub listeners: Vec<SocketAddr>,
    /// Addresses among them that serve only plaintext.
    pub plain: Vec<SocketAddr>,
    /// Address of the admin endpoint.
    pub admin: Option<SocketAddr>,
    /// Unix socket of the admin endpoint.
    pub admin_socket: Option<PathBuf>,
}

/// Serves until SIGTERM or SIGINT, then drains; SIGHUP or a changed file reloads. `on_ready` is called once all
/// sockets listen.
///
/// # Errors
/// All errors that prevent the gateway from starting. Later, an invalid configuration is only logged, and the old one
/// stays active.
pub fn serve(
    model: Gateway,
    origin: ConfigurationSource,
    on_ready: impl FnOnce(&Bound),
) -> Result<(), Vec<Diagnostic>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(start_failure)?;
    runtime.block_on(async {
        let (mut server, bound) = Server::start(model, origin).await?;
        let mut signals = Signals::new().map_err(start_failure)?;
        on_ready(&bound);
        server.is_ready();
        loop {
            tokio::select! {
                _ = signals.hangup.recv() => server.hang_up().await,
                _ = signals.reopen.recv() => server.reopen_logs(),
                () = server.files.changed() => { let _ = server.reload("a file changed").await; }
                Some(reply) = server.reloads.recv() => {
                    let _ = reply.send(server.reload("the admin API").await);
                }
                () = server.certificates.installed() => server.refresh("a certificate was issued").await,
                command = Updates::next(&mut server.updates) => match command {
                    Command::End => break,
                    command => server.execute(command).await,
                },
                () = deadline::reached(server.expiries.next()) => server.expiries.warn(),
                () = deadline::reached(server.closing) => server.close_listeners(),
                _ = signals.replace.recv() => server.start_successor(),
                outcome = successor::outcome(&mut server.successor) => {
                    if server.is_replaced(outcome).await { break }
                }
                () = deadline::reached(server.leaving) => break,
                _ = signals.terminate.recv() => if !server.waits_before_it_leaves() { break },
                _ = signals.interrupt.recv() => break,
            }
        }
        server.drain(&mut signals).await;
        Ok(())
    })
}

struct Server {
    origin: ConfigurationSource,
    updates: Option<Updates>,
    engine: Engine,
    workers: Vec<WorkerThread>,
    listening: Vec<Arc<ActiveListener>>,
    /// The listeners, as destinations of redirected connections.
    destinations: Arc<Destinations>,
    /// Artifacts that the next snapshot may reuse.
    cache: Arc<ArtifactCache>,
    names: NameRefresh,
    configuration: Arc<ArcSwap<Gateway>>,
    /// Warnings of the front end about the configuration.
    configuration_warnings: Vec<String>,
    /// State shown by the admin endpoint.
    served: Arc<ArcSwap<Served>>,
    resumption: Arc<ArcSwap<ResumptionBackend>>,
    admin: Arc<Admin>,
    /// Reloads that are requested by the admin API.
    reloads: mpsc::Receiver<oneshot::Sender<ReloadResult>>,
    files: Watch,
    certificates: Certificates,
    staples: Staples,
    expiries: Expiries,
    /// Time at which draining listeners are closed.
    closing: Option<Instant>,
    /// Whether listeners were closed while the process continues: none is opened any more.
    closed: bool,
    shutdown: watch::Sender<bool>,
    /// Inherited sockets.
    inherited: Inherited,
    admin_endpoint: Option<AdminEndpoint>,
    /// A successor process that is starting.
    successor: Option<Starting>,
    /// Time at which the drain begins.
    leaving: Option<Instant>,
    /// Closed when every worker thread has ended.
    running: mpsc::Receiver<()>,
}

impl Server {
    async fn start(
        model: Gateway,
        mut origin: ConfigurationSource,
    ) -> Result<(Self, Bound), Vec<Diagnostic>> {
        let mut inherited = Inherited::of_process().map_err(start_failure)?;
        file_limits::raise_limit();
        origin.release_memory.iter().for_each(|release| memory::set_allocator(*release));
        tokio::spawn(memory::monitor());
        let prometheus = metrics::install();
        let admission = admission(&model).map_err(start_failure)?;
        let engine = engine::start(&model.engine, EngineWatch(Arc::clone(&admission)))?;
        if let Some(overflow) = engine.overflow() {
            admission.expect_overflow(overflow.name());
        }
        Certificates::prepare(&model)?;
        let certificates = Certificates::new();
        let contents = origin.contents().with_sources(&model);
        let (answers, on_demand) = (certificates.answers(), certificates.on_demand());
        let nothing = ActiveParts { answers, on_demand, ..ActiveParts::default() };
        let snapshot = Snapshot::new(&model, &engine, &nothing)?;
        snapshot.resumption.join().await;
        snapshot.resumption.start(None);
        let resumption = Arc::new(ArcSwap::new(Arc::clone(&snapshot.resumption)));
        let (shutdown, watched) = watch::channel(false);
        let (alive, running) = mpsc::channel(1);
        let destinations = Arc::<Destinations>::default();
        let workers = start_workers(&model, &engine, &admission, &destinations, &watched, &alive);
        let workers = workers.map_err(start_failure)?;
        let configuration = Arc::new(ArcSwap::from_pointee(model.clone()));
        let (started, shown) = (quadrille_config::fixed(&model), Arc::clone(&configuration));
        let served: Arc<ArcSwap<Served>> = Arc::default();
        let (shown_served, drained) = (Arc::clone(&served), Arc::clone(&served));
        let drain: DrainEndpoint =
            Box::new(move |upstream, server, draining| drained.load().drain(upstream, server, draining));
        let (requested, reloads) = mpsc::channel(1);
        let log_level = origin.log_level.clone();
        let admin = Arc::new(Admin {
            prometheus,
            engine: engine.clone(),
            admission: Some(admission),
            resumption: Some(Arc::clone(&resumption)),
            role: "gateway",
            status: Box::new(move || shown_served.load().status()),
            configuration: Box::new(move || {
                let mut shown = quadrille_config::show_in_force(&started, &shown.load());
                configuration_warnings::add_to(&mut shown);
                shown
            }),
            history: history::History::default(),
            ready: AtomicBool::new(true),
            actions: Some(Actions { drain, log_level, reloads: requested }),
            pages: origin.pages.clone(),
        });
        let admin_endpoint = admin.start(model.admin.as_ref(), &mut inherited)?;
        let admin_address = admin_endpoint.as_ref().and_then(AdminEndpoint::address);
        let admin_socket = admin_endpoint.as_ref().and_then(AdminEndpoint::path).map(Path::to_owned);
        let mut server = Self {
            updates: origin.updates.take(),
            configuration_warnings: origin.warnings(),
            origin,
            engine,
            workers,
            listening: Vec::new(),
            destinations,
            cache: Arc::default(),
            names: NameRefresh::default(),
            configuration,
            served,
            resumption,
            admin,
            reloads,
            files: Watch::new(),
            certificates,
            staples: Staples::new(),
            expiries: Expiries::default(),
            closing: None,
            closed: false,
            inherited,
            admin_endpoint,
            successor: None,
            leaving: None,
            shutdown,
            running,
        };
        server.log_warnings();
        server.note_warnings(&snapshot.warnings);
        let listeners = server.install(snapshot, &model)?;
        server.files.follow(contents);
        let fleet = server.resumption.load_full();
        server.certificates.follow(&model, &server.cache.key_servers(), fleet.certificates.as_ref());
        let has_sockets = |(_, listener): &(_, &Listener)| listener.bound;
        let is_plain =
            |(_, listener): &(_, &Listener)| listener.chains.iter().all(|chain| chain.tls.is_none());
        let bound = || listeners.iter().zip(&model.listeners).filter(has_sockets);
        let plain = bound().filter(is_plain).map(|(address, _)| *address).collect();
        let listeners = bound().map(|(address, _)| *address).collect();
        Ok((server, Bound { listeners, plain, admin: admin_address, admin_socket }))
    }

    /// Executes a command of a front end.
    async fn execute(&mut self, command: Command) {
        match command {
            Command::Apply(model, reply) => _ = reply.send(self.apply_as_it_is(*model).await),
            Command::Statistics(reply) => _ = reply.send(self.statistics()),
            Command::Drain(how) => self.drain_listeners(how),
            // Handled by the main loop.
            Command::End => {}
        }
    }

    fn drain_listeners(&mut self, how: ListenerDrain) {
        tracing::info!(?how, "draining the listeners");
        self.listening.iter().for_each(|listening| listening.discourage());
        match how {
            ListenerDrain::Now => self.close_listeners(),
            ListenerDrain::After(time) => self.closing = Instant::now().checked_add(time),
            ListenerDrain::Discourage => {}
        }
    }

    fn close_listeners(&mut self) {
        self.closing = None;
        self.closed = true;
        self.listening.iter().for_each(|listening| listening.close());
    }

    /// Builds a snapshot on another thread, while this one and the event loops continue, and puts it into service.
    async fn apply(&mut self, mut model: Gateway) -> Result<Applied, Vec<Diagnostic>> {
        let began = Instant::now();
        Certificates::prepare(&model)?;
        if self.closed {
            model.listeners.clear();
        }
        let (engine, before) = (self.engine.clone(), self.resumption.load_full());
        let active = ActiveParts {
            listeners: self.listening.clone(),
            resumption: Some(Arc::clone(&before)),
            cache: Arc::clone(&self.cache),
            names: self.names.names(),
            answers: self.certificates.answers(),
            on_demand: self.certificates.on_demand(),
        };
        let building = background::run(move || {
            let snapshot = Snapshot::new(&model, &engine, &active)?;
            Ok((model, snapshot))
        });
        let (model, snapshot) = building.await.unwrap_or_else(|error| Err(start_failure(error)))?;
        let (warnings, made) = (snapshot.warnings.clone(), snapshot.made);
        let resumption = Arc::clone(&snapshot.resumption);
        self.warn_of_fixed(&model);
        let listeners = self.install(snapshot, &model)?;
        resumption.start(Some(&before));
        let fleet = resumption.certificates.as_ref();
        self.certificates.follow(&model, &self.cache.key_servers(), fleet);
        self.resumption.store(resumption);
        self.configuration.store(Arc::new(model));
        Ok(Applied { warnings, listeners, took: began.elapsed(), made })
    }

    /// Puts a snapshot into service: opens sockets first, because only that can still fail.
    fn install(&mut self, snapshot: Snapshot, model: &Gateway) -> Result<Vec<SocketAddr>, Vec<Diagnostic>> {
        let models = snapshot.listeners.iter().map(|prepared| &prepared.model);
        let retained = ActiveListener::retained(&self.listening, models);
        let (event_loops, fleet) = (self.workers.len(), snapshot.resumption.fleet_secret());
        let inherited = &mut self.inherited;
        let opened = OpenedSockets::open_all(&snapshot.listeners, &retained, event_loops, fleet, inherited)?;
        for change in snapshot.changes {
            change.apply();
        }
        let mut addresses = Vec::new();
        let mut listening = Vec::new();
        for ((prepared, before), opened) in snapshot.listeners.into_iter().zip(retained).zip(opened) {
            let serves_http3 = prepared.model.has_http3();
            let active = match before {
                Some(active) => {
                    active.update(prepared);
                    addresses.push(active.address);
                    active
                }
                None => {
                    let bound = opened.bound(prepared.model.address);
                    addresses.push(bound);
                    Arc::new(ActiveListener::new(prepared, bound))
                }
            };
            if !serves_http3 {
                active.close_quic();
            } else if !opened.quic.is_empty() {
                active.open_quic();
            }
            self.assign(&active, opened);
            listening.push(active);
        }
        for gone in self.listening.iter().filter(|old| !listening.iter().any(|new| Arc::ptr_eq(old, new))) {
            gone.close();
        }
        self.destinations.set(&listening);
        self.listening = listening;
        self.staples.follow(snapshot.cache.staples());
        self.cache = Arc::new(snapshot.cache);
        self.names.follow(snapshot.names, model, self.cache.upstreams());
        memory::limit_to(&model.memory);
        for warning in &snapshot.warnings {
            tracing::warn!("{warning}");
        }
        self.expiries.follow(snapshot.served.expiries());
        self.served.store(Arc::new(snapshot.served));
        self.follow_logs(model);
        Ok(addresses)
    }

    /// Assigns the sockets to the event loops.
    fn assign(&self, listener: &Arc<ActiveListener>, opened: OpenedSockets) {
        listener.retain(opened.retained);
        let give = |worker: &WorkerThread, socket| {
            let _ = worker.assignments.send(Assignment { listener: Arc::clone(listener), socket });
        };
        // The predecessor process may have had more event loops.
        for (worker, socket) in self.workers.iter().cycle().zip(opened.tcp) {
            give(worker, ListenerSocket::Tcp(socket));
        }
        for (worker, shard) in self.workers.iter().cycle().zip(opened.quic) {
            give(worker, ListenerSocket::Quic(Box::new(shard)));
        }
    }

    fn statistics(&self) -> Statistics {
        Statistics {
            listeners: self.listening.iter().map(|listening| listening.statistics()).collect(),
            upstreams: self.cache.upstreams().values().map(|upstream| upstream.statistics()).collect(),
            batch_sizes: statistics::batch_sizes(),
        }
    }

    /// Logs changes of settings that are fixed when the process starts.
    fn warn_of_fixed(&self, new: &Gateway) {
        let old = self.configuration.load();
        for setting in quadrille_config::needs_restart(&old, new) {
            tracing::warn!(setting, "this change takes effect at the next start");
        }
    }
}
