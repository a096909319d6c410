//! The entrance: the resources of a bootstrap and of its control planes, as one configuration.

use crate::{
    control_planes::ControlPlanes,
    resource_store::ResourceStore,
    state::State,
    stats::XdsStats,
    subscription_manager::SubscriptionManager,
    trust::{RefusalsInReady, Trust},
};
use quadrille_config::{
    Diagnostics,
    model::{Gateway, Origin},
};
use quadrille_envoy::{Bootstrap, ConfigSource, ResourceType};
use quadrille_gateway::Control;
use std::{io, path::PathBuf, sync::Arc, time::Instant};

/// Keeps the resources of a bootstrap and of its control planes, and puts them into service. Clones share all of it.
#[derive(Clone)]
pub struct XdsManager(Arc<State>);

impl XdsManager {
    /// Starts with the resources that the bootstrap itself contains.
    pub fn new(bootstrap: Bootstrap, trust: Trust) -> Self {
        Self(Arc::new(State::new(ResourceStore::new(bootstrap, trust))))
    }

    /// The gateway of a bootstrap that was read again, with everything that control planes have sent so far. The
    /// control planes themselves and the node's identity change at the next start only. The bootstrap of before stays
    /// the active one until [`commit_bootstrap`](Self::commit_bootstrap).
    ///
    /// # Errors
    /// Every contradiction, with its place.
    pub fn prepare_bootstrap(&self, bootstrap: Bootstrap) -> Result<Gateway, Diagnostics> {
        self.0.store().prepare_bootstrap(bootstrap)
    }

    /// The gateway serves the bootstrap that was prepared last.
    pub fn commit_bootstrap(&self) {
        self.0.store().commit_bootstrap();
    }

    /// The files besides the bootstrap's own of the one that was read last, in service or not.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.store().files().to_vec()
    }

    /// The bootstrap that is in service, as it was read.
    pub fn bootstrap(&self) -> Arc<Bootstrap> {
        self.0.store().bootstrap().clone()
    }

    /// The bootstrap that is in service, with the active resources of control planes beside its own.
    pub fn active(&self) -> Bootstrap {
        let store = self.0.store();
        Bootstrap { resources: store.active().clone(), ..Bootstrap::clone(store.bootstrap()) }
    }

    /// Whether listeners and clusters have come from the control planes that the bootstrap names, or the time for which
    /// they are waited for is over.
    pub(crate) fn is_initialized(&self, now: Instant) -> bool {
        let dynamic = self.0.store().dynamic().clone();
        let waited = now.saturating_duration_since(self.0.started);
        let [lds_timeout, cds_timeout] = dynamic.initial_fetch_timeouts;
        let sources = [
            (ResourceType::Listener, &dynamic.lds, lds_timeout),
            (ResourceType::Cluster, &dynamic.cds, cds_timeout),
        ];
        sources.into_iter().all(|(kind, source, timeout)| {
            let comes = matches!(source, Some(ConfigSource::Ads | ConfigSource::Api(_)));
            let stats = self.0.stats.subscription(kind);
            let given_up = !timeout.is_zero() && waited >= timeout;
            !comes || given_up || stats.success() + stats.rejected() > 0
        })
    }

    /// What `/ready` says of what was refused, and whether that makes it fail.
    pub(crate) fn refusals_in_ready(&self) -> (String, bool) {
        let how = self.0.store().trust().refusals_in_ready;
        let refusals = self.0.refusals();
        match how {
            RefusalsInReady::Hide => (String::new(), false),
            RefusalsInReady::Say => (refusals.text(), false),
            RefusalsInReady::Fail => (refusals.text(), refusals.close_something()),
        }
    }

    /// Counts of the control planes' responses and streams.
    pub(crate) fn stats(&self) -> &XdsStats {
        &self.0.stats
    }

    /// Subscribes to the bootstrap's control planes on a thread of its own, for as long as the process runs.
    ///
    /// # Errors
    /// If a control plane cannot be used as it is configured, or the thread cannot be started.
    pub fn start(&self, control: Control) -> Result<(), Diagnostics> {
        let control_planes = ControlPlanes::new(&self.bootstrap())?;
        let manager = SubscriptionManager::new(self.0.clone(), control, control_planes);
        let failed = |error: io::Error| {
            Diagnostics::whole(
                Origin::Process,
                format!("cannot start the thread for control planes: {error}"),
            )
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let thread = std::thread::Builder::new().name("xds".to_owned());
        let spawned = thread.spawn(move || {
            quadrille_gateway::lower_priority();
            runtime.block_on(manager.run());
        });
        spawned.map(drop).map_err(failed)
    }
}
