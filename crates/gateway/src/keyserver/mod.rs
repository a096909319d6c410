//! A running key server: start, reload of keys, policy and certificates, drain.
//!
//! - `in_use`: its certificate, CAs and revocation lists, with their expiry.

mod in_use;

use crate::{
    admin::Admin,
    handover::Inherited,
    listener::socket,
    process::{engine, file_limits, signals::Signals, start_failure, unix_socket},
    reload::watch::{Contents, Watch},
    server::{deadline, expiries::Expiries},
    telemetry::{
        history::History,
        last_reload,
        metrics::{self, EngineMetrics},
    },
    tls::{key::remote_key, pem},
};
use arc_swap::ArcSwap;
use in_use::InUse;
use quadrille_config::{
    Diagnostic,
    model::{KeyServer, Listen},
};
use quadrille_keyless::{
    ClientTrust,
    server::{Keys, Policy, Server, Threads},
};
use quadrille_unix_time::unix_now;
use serde_json::{Value, json};
use std::{
    fs, io,
    net::SocketAddr,
    num::NonZeroUsize,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Addresses of a key server that has started.
#[derive(Clone, Debug)]
pub struct KeyServerBound {
    /// Listening addresses, in the order of the settings, with actual ports in place of 0.
    pub listeners: Vec<String>,
    /// Address of the admin endpoint.
    pub admin: Option<SocketAddr>,
}

/// Serves until SIGTERM or SIGINT, then drains; SIGHUP, or a changed file, reloads keys, policy and certificates.
/// `on_ready` is called once all sockets listen.
///
/// # Errors
/// All errors that prevent the server from starting. Later errors are only logged, and the previous state stays in
/// service.
pub fn serve_keys(model: KeyServer, on_ready: impl FnOnce(&KeyServerBound)) -> Result<(), Vec<Diagnostic>> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(start_failure)?;
    runtime.block_on(async {
        let (mut running, bound) = Running::start(model)?;
        let mut signals = Signals::new().map_err(start_failure)?;
        on_ready(&bound);
        loop {
            tokio::select! {
                _ = signals.hangup.recv() => running.reload("SIGHUP"),
                () = running.files.changed() => running.reload("a file changed"),
                () = deadline::reached(running.expiries.next()) => running.expiries.warn(),
                _ = signals.terminate.recv() => break,
                _ = signals.interrupt.recv() => break,
            }
        }
        running.drain(&mut signals).await;
        Ok(())
    })
}

struct Running {
    model: KeyServer,
    server: Server,
    threads: Arc<Threads>,
    admin: Arc<Admin>,
    files: Watch,
    sockets: Vec<PathBuf>,
    in_use: Arc<ArcSwap<InUse>>,
    expiries: Expiries,
}

impl Running {
    fn start(model: KeyServer) -> Result<(Self, KeyServerBound), Vec<Diagnostic>> {
        file_limits::raise_limit();
        let prometheus = metrics::install();
        let engine = engine::start(&model.engine, EngineMetrics)?;
        let contents = contents(&model);
        let compute_threads = engine::compute_threads(&model.engine).map_err(start_failure)?;
        let server = Server::new(engine.clone(), compute_threads);
        let in_use = Arc::<ArcSwap<InUse>>::default();
        first_load(&server, &model, &in_use)?;
        let threads = Arc::new(Threads::start(&server, event_loops(&model)).map_err(start_failure)?);
        let (listeners, sockets) = listen(&model, &threads)?;
        let (shown, of) = (model.clone(), server.clone());
        let status = Arc::clone(&in_use);
        let admin = Arc::new(Admin {
            prometheus,
            engine,
            admission: None,
            resumption: None,
            role: "keyserver",
            status: Box::new(move || status.load().status()),
            configuration: Box::new(move || show(&shown, &of.keys())),
            history: History::default(),
            ready: AtomicBool::new(true),
            actions: None,
            pages: None,
        });
        let admin_endpoint = admin.start(model.admin.as_ref(), &mut Inherited::default())?;
        let address = admin_endpoint.and_then(|endpoint| endpoint.address());
        let mut files = Watch::new();
        files.follow(contents);
        let mut expiries = Expiries::default();
        expiries.follow(in_use.load().expiries());
        let running = Self { model, server, threads, admin, files, sockets, in_use, expiries };
        Ok((running, KeyServerBound { listeners, admin: address }))
    }

    /// Reloads each part separately: an error in one leaves that part unchanged.
    fn reload(&mut self, cause: &str) {
        let contents = contents(&self.model);
        let problems: Vec<Diagnostic> = [
            load_keys(&self.server, &self.model),
            load_policy(&self.server, &self.model),
            load_tls(&self.server, &self.model, &self.in_use),
        ]
        .into_iter()
        .filter_map(Result::err)
        .flatten()
        .collect();
        last_reload::note(&problems);
        for problem in &problems {
            tracing::error!(cause, %problem, "not reloaded; the old keys, policy and certificates stay in service");
        }
        tracing::info!(
            cause,
            keys = self.server.keys().iter().count(),
            "keys, policy and certificates read again"
        );
        self.expiries.follow(self.in_use.load().expiries());
        self.files.follow(contents);
    }

    async fn drain(self, signals: &mut Signals) {
        let limit = self.model.drain_timeout;
        tracing::info!(limit = ?limit, "draining");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.threads.drain();
        for socket in &self.sockets {
            let _ = fs::remove_file(socket);
        }
        tokio::select! {
            () = self.threads.drained() => tracing::info!("drained"),
            () = tokio::time::sleep(limit) => tracing::warn!("drain timeout; closing remaining connections"),
            _ = signals.terminate.recv() => tracing::warn!("second signal; closing remaining connections"),
            _ = signals.interrupt.recv() => tracing::warn!("second signal; closing remaining connections"),
        }
    }
}

/// Returns the number of event loops. One serves some hundred thousand operations a second; the compute threads need
/// the other CPUs.
fn event_loops(model: &KeyServer) -> NonZeroUsize {
    const CPUS_FOR_ONE: usize = 8;
    model.threads.unwrap_or_else(|| {
        let cpus = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        NonZeroUsize::new(cpus.div_ceil(CPUS_FOR_ONE)).unwrap_or(NonZeroUsize::MIN)
    })
}

/// Loads all parts at start, where every error is fatal.
fn first_load(server: &Server, model: &KeyServer, in_use: &ArcSwap<InUse>) -> Result<(), Vec<Diagnostic>> {
    let loads = [load_keys(server, model), load_policy(server, model), load_tls(server, model, in_use)];
    let problems: Vec<Diagnostic> = loads.into_iter().filter_map(Result::err).flatten().collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn load_keys(server: &Server, model: &KeyServer) -> Result<(), Vec<Diagnostic>> {
    let (directory, place) = &model.keys;
    let cannot = |error: io::Error| {
        vec![Diagnostic::new(place, format!("cannot read the directory {}: {error}", directory.display()))]
    };
    let found = server.load_keys(directory).map_err(cannot)?;
    let (fatal, warnings): (Vec<_>, Vec<_>) = found.into_iter().partition(|problem| problem.fatal);
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    if server.keys().iter().next().is_none() && fatal.is_empty() {
        tracing::warn!(directory = %directory.display(), "there is no private key in the directory yet");
    }
    let problems: Vec<Diagnostic> =
        fatal.iter().map(|problem| Diagnostic::new(place, problem.to_string())).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

fn load_policy(server: &Server, model: &KeyServer) -> Result<(), Vec<Diagnostic>> {
    let policy = match &model.policy {
        None => Policy::default(),
        Some(file) => quadrille_config::load_key_policy(file)?,
    };
    server.set_policy(policy);
    Ok(())
}

fn load_tls(server: &Server, model: &KeyServer, in_use: &ArcSwap<InUse>) -> Result<(), Vec<Diagnostic>> {
    let Some([certificate, key, ca]) = &model.tls else { return Ok(()) };
    let (credentials, cas) =
        remote_key::read_credentials(certificate, key, ca).map_err(|problem| vec![problem])?;
    let revoked = model.client_crl.as_ref().map(|(crl, place)| pem::read_crl(crl, place)).transpose();
    let revoked = revoked.map_err(|problem| vec![problem])?;
    let clients = ClientTrust { cas, revoked };
    server.set_tls(&credentials, &clients).map_err(|error| {
        let message = format!("BoringSSL does not accept the certificate and key: {error}");
        vec![Diagnostic::new(&certificate.1, message)]
    })?;
    let now_in_use = InUse::of(model, &ca.0, &credentials, &clients);
    let expired = now_in_use.expiries().filter(|(not_after, _)| *not_after < unix_now());
    expired.for_each(|(_, warning)| tracing::warn!("{warning}"));
    in_use.store(Arc::new(now_in_use));
    Ok(())
}

/// Opens all sockets, and accepts connections on them. Returns their addresses, and the files to remove at the end.
fn listen(model: &KeyServer, threads: &Arc<Threads>) -> Result<(Vec<String>, Vec<PathBuf>), Vec<Diagnostic>> {
    let (mut addresses, mut files) = (Vec::new(), Vec::new());
    for (listen, place) in &model.listen {
        let threads = Arc::clone(threads);
        match listen {
            Listen::Tcp(address) => {
                let socket = socket::bind_one(*address, place).map_err(|problem| vec![problem])?;
                addresses.push(socket.local_addr().map_err(start_failure)?.to_string());
                tokio::spawn(async move { report(threads.accept_tcp(socket).await) });
            }
            Listen::Unix(path) => {
                // With a policy, which lists the users that are served, members of the group may connect.
                let mode = if model.policy.is_some() { 0o660 } else { 0o600 };
                let socket = unix_socket::bind(path, &model.unix_access, mode)
                    .map_err(|error| vec![Diagnostic::new(place, error.problem(path))])?;
                addresses.push(format!("unix:{}", path.display()));
                files.push(path.clone());
                tokio::spawn(async move { report(threads.accept_unix(socket).await) });
            }
        }
    }
    Ok((addresses, files))
}

fn report(accepted: io::Result<()>) {
    if let Err(error) = accepted {
        tracing::error!(%error, "cannot accept connections");
    }
}

fn contents(model: &KeyServer) -> Contents {
    let tls = model.tls.iter().flatten().chain(&model.client_crl).filter_map(|(source, _)| source.path());
    let files = tls.chain(&model.policy).map(PathBuf::as_path);
    Contents::of_file(None).with_paths(std::iter::once(model.keys.0.as_path()).chain(files))
}

/// Returns the settings and the served keys for the admin page.
fn show(model: &KeyServer, keys: &Keys) -> Value {
    let listen = model.listen.iter().map(|(listen, _)| match listen {
        Listen::Tcp(address) => address.to_string(),
        Listen::Unix(path) => format!("unix:{}", path.display()),
    });
    let keys = keys.iter().map(|stored| {
        let client = stored.generated.as_ref().map(|generated| &generated.client);
        json!({
            "name": stored.name,
            "ski": stored.ski.to_string(),
            "type": stored.key_type().to_string(),
            "generated_for": client,
        })
    });
    json!({
        "listen": listen.collect::<Vec<_>>(),
        "directory": model.keys.0.display().to_string(),
        "policy": model.policy.as_ref().map(|file| file.display().to_string()),
        "keys": keys.collect::<Vec<_>>(),
    })
}
