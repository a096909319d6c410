//! The running gateway: start, reload, drain.

use crate::{
    access_log,
    admin::Admin,
    bind, compute, config, metrics,
    model::{AccessLog, Gateway},
    plan::Plan,
    problem::Problem,
    resumption::Resumption,
    site::Listening,
    upstream::health,
    watch::{Contents, Watch},
    worker::{self, WorkerThread},
};
use arc_swap::ArcSwap;
use quadrille_engine::Engine;
use std::{
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::{mpsc, watch},
};

/// Reads the configuration again, for a reload; on failure, what is wrong with it.
pub type Reread = Box<dyn Fn() -> Result<Gateway, Vec<String>>>;

/// Where a configuration came from.
pub struct Origin {
    /// Reads it again.
    pub reread: Reread,
    /// The file to watch, where there is one.
    pub file: Option<PathBuf>,
}

/// Where a gateway can be reached once it has started.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The listeners' addresses, in the configuration's order, with real ports in place of 0.
    pub listeners: Vec<SocketAddr>,
    /// The admin endpoint's address.
    pub admin: Option<SocketAddr>,
}

/// Reads and checks everything that a configuration names, without serving it. Returns warnings.
///
/// # Errors
/// Every problem that would keep it from being served, except taken ports.
pub fn check(model: &Gateway) -> Result<Vec<String>, Vec<Problem>> {
    let engine = compute::idle().map_err(internal)?;
    let resumption = Resumption::open(&model.resumption, None)?;
    Plan::new(model, &engine, &resumption, &[]).map(|plan| plan.warnings)
}

/// Serves until SIGTERM or SIGINT, then drains; SIGHUP or a changed file reloads. `on_ready` is called once all
/// sockets listen.
///
/// # Errors
/// Whatever keeps the gateway from starting. Once it serves, a bad configuration only logs, and the old one stays.
pub fn serve(model: Gateway, origin: Origin, on_ready: impl FnOnce(&Bound)) -> Result<(), Vec<Problem>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(internal)?;
    runtime.block_on(async {
        let (mut server, bound) = Server::start(model, origin).await?;
        let mut signals = Signals::new().map_err(internal)?;
        on_ready(&bound);
        loop {
            tokio::select! {
                _ = signals.hangup.recv() => server.reload("SIGHUP"),
                () = server.files.changed() => server.reload("a file changed"),
                _ = signals.terminate.recv() => break,
                _ = signals.interrupt.recv() => break,
            }
        }
        server.drain(&mut signals).await;
        Ok(())
    })
}

struct Server {
    origin: Origin,
    engine: Engine,
    workers: Vec<WorkerThread>,
    listening: Vec<Arc<Listening>>,
    configuration: Arc<ArcSwap<Gateway>>,
    resumption: Arc<ArcSwap<Resumption>>,
    admin: Arc<Admin>,
    files: Watch,
    shutdown: watch::Sender<bool>,
    /// Closed when every worker thread has ended.
    running: mpsc::Receiver<()>,
}

pub(crate) struct Signals {
    pub(crate) hangup: Signal,
    pub(crate) terminate: Signal,
    pub(crate) interrupt: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }
}

impl Server {
    async fn start(model: Gateway, origin: Origin) -> Result<(Self, Bound), Vec<Problem>> {
        let prometheus = metrics::install();
        let engine = compute::start(&model.engine).map_err(internal)?;
        let contents = Contents::of_file(origin.file.as_deref()).with_sources(&model);
        let resumption = Resumption::open(&model.resumption, None)?;
        let plan = Plan::new(&model, &engine, &resumption, &[])?;
        resumption.join().await;
        resumption.start(None);
        let resumption = Arc::new(ArcSwap::new(resumption));
        let (shutdown, watched) = watch::channel(false);
        let (alive, running) = mpsc::channel(1);
        let workers = start_workers(&model, &engine, &watched, &alive).map_err(internal)?;
        let configuration = Arc::new(ArcSwap::from_pointee(model.clone()));
        let shown = Arc::clone(&configuration);
        let admin = Arc::new(Admin {
            prometheus,
            engine: engine.clone(),
            resumption: Some(Arc::clone(&resumption)),
            configuration: Box::new(move || config::show(&shown.load())),
            ready: AtomicBool::new(true),
        });
        let admin_address = admin.start(model.admin.as_ref(), &watched)?;
        let mut server = Self {
            origin,
            engine,
            workers,
            listening: Vec::new(),
            configuration,
            resumption,
            admin,
            files: Watch::new(),
            shutdown,
            running,
        };
        let listeners = server.install(plan, &model)?;
        server.files.follow(contents);
        Ok((server, Bound { listeners, admin: admin_address }))
    }

    /// Reads the configuration again and swaps it in whole, or leaves the old one and says why.
    fn reload(&mut self, cause: &str) {
        match self.try_reload() {
            Ok(()) => {
                metrics::reload(true);
                tracing::info!(cause, "configuration reloaded");
            }
            Err(problems) => {
                metrics::reload(false);
                for problem in problems {
                    tracing::error!(cause, problem, "not reloaded; the old configuration goes on serving");
                }
            }
        }
    }

    fn try_reload(&mut self) -> Result<(), Vec<String>> {
        let shown = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect::<Vec<_>>();
        let file = self.origin.file.as_deref();
        // What is watched is read before it is used, so that a change in between is seen as one.
        let before = Contents::of_file(file);
        let model = (self.origin.reread)()?;
        let before = before.with_sources(&model);
        let running = self.resumption.load_full();
        let resumption = Resumption::open(&model.resumption, Some(&running)).map_err(shown)?;
        let plan = Plan::new(&model, &self.engine, &resumption, &self.listening).map_err(shown)?;
        self.warn_of_fixed(&model);
        self.install(plan, &model).map_err(shown)?;
        resumption.start(Some(&running));
        self.resumption.store(resumption);
        self.files.follow(before);
        self.configuration.store(Arc::new(model));
        Ok(())
    }

    /// Puts a plan into service: sockets first, because only they can still fail.
    fn install(&mut self, plan: Plan, model: &Gateway) -> Result<Vec<SocketAddr>, Vec<Problem>> {
        let kept = Listening::kept(&self.listening, plan.sites.iter().map(|site| site.listener.address));
        let mut opened = Vec::new();
        let mut problems = Vec::new();
        for (site, _) in plan.sites.iter().zip(&kept).filter(|(_, kept)| kept.is_none()) {
            match bind::bind_all(site.listener.address, &site.listener.place, self.workers.len()) {
                Ok(sockets) => opened.push(sockets),
                Err(problem) => problems.push(problem),
            }
        }
        if !problems.is_empty() {
            return Err(problems);
        }
        let mut opened = opened.into_iter();
        let mut addresses = Vec::new();
        let mut listening = Vec::new();
        for (site, kept) in plan.sites.into_iter().zip(kept) {
            match kept {
                Some(kept) => {
                    kept.renew(site);
                    addresses.push(kept.address);
                    listening.push(kept);
                }
                None => {
                    let new = Arc::new(Listening::new(site));
                    let sockets = opened.next().unwrap_or_default();
                    addresses.extend(sockets.first().and_then(|socket| socket.local_addr().ok()));
                    for (worker, socket) in self.workers.iter().zip(sockets) {
                        let _ = worker.assignments.send((Arc::clone(&new), socket));
                    }
                    listening.push(new);
                }
            }
        }
        for gone in self.listening.iter().filter(|old| !listening.iter().any(|new| Arc::ptr_eq(old, new))) {
            gone.closing.send_replace(true);
        }
        self.listening = listening;
        for upstream in plan.upstreams.values() {
            tokio::spawn(health::run(Arc::downgrade(upstream)));
        }
        for warning in &plan.warnings {
            tracing::warn!("{warning}");
        }
        access_log::enable(model.access_log != AccessLog::Off);
        Ok(addresses)
    }

    /// Some settings are fixed when the process starts.
    fn warn_of_fixed(&self, new: &Gateway) {
        let old = self.configuration.load();
        let fixed = [
            ("engine", format!("{:?}", old.engine) != format!("{:?}", new.engine)),
            ("threads", old.threads != new.threads),
            ("pool", pool_size(&old) < pool_size(new)),
            ("access_log", old.access_log != new.access_log),
            (
                "admin",
                old.admin.as_ref().map(|admin| admin.address)
                    != new.admin.as_ref().map(|admin| admin.address),
            ),
        ];
        for (setting, _) in fixed.iter().filter(|(_, changed)| *changed) {
            tracing::warn!(setting, "this change takes effect at the next start");
        }
    }

    /// Stops accepting, lets what is under way finish, and returns when it has or when time is up. A second signal
    /// ends it at once.
    async fn drain(mut self, signals: &mut Signals) {
        let limit = self.configuration.load().drain_timeout;
        tracing::info!(limit = ?limit, "draining");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.shutdown.send_replace(true);
        for listening in &self.listening {
            listening.closing.send_replace(true);
        }
        self.workers.clear();
        tokio::select! {
            _ = self.running.recv() => tracing::info!("drained"),
            () = tokio::time::sleep(limit) => tracing::warn!("time is up; closing the connections that are left"),
            _ = signals.terminate.recv() => tracing::warn!("second signal; closing the connections that are left"),
            _ = signals.interrupt.recv() => tracing::warn!("second signal; closing the connections that are left"),
        }
    }
}

fn start_workers(
    model: &Gateway,
    engine: &Engine,
    shutdown: &watch::Receiver<bool>,
    running: &mpsc::Sender<()>,
) -> io::Result<Vec<WorkerThread>> {
    let count = model.threads.map_or_else(std::thread::available_parallelism, Ok)?.get();
    let pool = pool_size(model);
    (0..count)
        .map(|index| worker::start(index, engine.clone(), pool, shutdown.clone(), running.clone()))
        .collect()
}

/// Idle connections that a worker keeps, to all upstreams together. A gateway without upstreams may get one by a reload.
fn pool_size(model: &Gateway) -> usize {
    const LEAST: usize = 128;
    model.upstreams.values().map(|upstream| upstream.pool.get()).sum::<usize>().max(LEAST)
}

pub(crate) fn internal(error: io::Error) -> Vec<Problem> {
    vec![Problem::new(&crate::model::Place::builtin(), format!("cannot start: {error}"))]
}
