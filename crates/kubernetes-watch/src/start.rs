//! Start of a watch, on a thread of its own.

use crate::{
    access::Access,
    events::Events,
    lease::HeldLease,
    outcome::Outcome,
    pages::KubernetesPages,
    progress::Progress,
    settings::{NamespacedName, Settings},
    transport,
    updater::Updater,
    watched::Scope,
    writer::Writer,
};
use kube::Client;
use quadrille_config::{
    Diagnostics,
    model::{Gateway, Origin},
};
use quadrille_gateway::{Control, ReadConfiguration};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tokio::sync::{mpsc, watch};

/// A watch of a cluster, whose objects are the gateway's configuration.
pub struct Kubernetes {
    settings: Settings,
    base: Gateway,
    active: Arc<Mutex<Gateway>>,
    progress: Progress,
}

impl Kubernetes {
    /// Creates a watch; `base` has the settings of the gateway that do not come from the cluster.
    pub fn new(settings: Settings, base: Gateway) -> Self {
        let active = Arc::new(Mutex::new(base.clone()));
        Self { settings, base, active, progress: Progress::default() }
    }

    /// Returns the configuration in service, for reloads.
    pub fn reread(&self) -> ReadConfiguration {
        let active = Arc::clone(&self.active);
        Box::new(move || Ok(active.lock().unwrap_or_else(PoisonError::into_inner).clone()))
    }

    /// Returns the admin pages.
    pub fn pages(&self) -> KubernetesPages {
        KubernetesPages(self.progress.clone())
    }

    /// Checks that the access to the API server can be read.
    ///
    /// # Errors
    /// Fails with the reason if not.
    pub fn check(&self) -> Result<(), Diagnostics> {
        self.access().read().map(drop).map_err(failed)
    }

    /// Watches the cluster for as long as the process runs.
    ///
    /// # Errors
    /// Fails if the thread cannot be started.
    pub fn start(self, control: Control) -> Result<(), Diagnostics> {
        let access = self.access();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(format!("cannot start the watch: {error}")))?;
        let thread = std::thread::Builder::new().name("kubernetes".to_owned());
        let spawned = thread.spawn(move || {
            quadrille_gateway::lower_priority();
            runtime.block_on(self.run(&access, control));
        });
        spawned.map(drop).map_err(|error| failed(format!("cannot start the watch: {error}")))
    }

    fn access(&self) -> Access {
        Access { kubeconfig: self.settings.kubeconfig.clone() }
    }

    async fn run(self, access: &Access, control: Control) {
        let (client, namespace) = loop {
            match transport::client(access, self.progress.watches.clone()) {
                Ok(client) => break client,
                Err(problem) => tracing::error!(problem, "no access to the API server; retrying"),
            }
            tokio::time::sleep(RETRY).await;
        };
        let scopes = Scope::all(&self.settings);
        let (sender, changes) = mpsc::channel(CHANGES);
        for (number, scope) in scopes.iter().enumerate() {
            tokio::spawn(scope.clone().follow(client.clone(), number, sender.clone()));
        }
        drop(sender);
        let (outcomes, received) = watch::channel(Outcome::default());
        tokio::spawn(writer(&self.settings, &client, namespace, received, &self.progress).run());
        let gateway = (control, self.base, self.active);
        Updater::new((self.settings, &scopes), gateway, self.progress, outcomes).run(changes).await;
    }
}

fn writer(
    settings: &Settings,
    client: &Client,
    namespace: String,
    outcomes: watch::Receiver<Outcome>,
    progress: &Progress,
) -> Writer {
    let name = settings.lease.clone().unwrap_or(NamespacedName { namespace, name: LEASE.to_owned() });
    let identity = settings.identity.clone();
    Writer {
        events: Events::new(client.clone(), &identity),
        lease: HeldLease::new(client.clone(), name, identity),
        client: client.clone(),
        outcomes,
        progress: progress.clone(),
        announced: BTreeSet::new(),
        written: BTreeMap::new(),
        problem: None,
    }
}

fn failed(problem: String) -> Diagnostics {
    Diagnostics::whole(Origin::Process, problem)
}

const LEASE: &str = "quadrille";
/// Changes that are read before they are applied.
const CHANGES: usize = 1024;
const RETRY: Duration = Duration::from_secs(5);
