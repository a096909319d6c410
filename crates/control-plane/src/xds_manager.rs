//! Entry point of the crate: the resources of a bootstrap and of its control planes, as one configuration.

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

/// Holds the resources of a bootstrap and of its control planes, and puts them into service. Clones share the state.
#[derive(Clone)]
pub struct XdsManager(Arc<State>);

impl XdsManager {
    /// Creates a manager with the resources that the bootstrap contains.
    pub fn new(bootstrap: Bootstrap, trust: Trust) -> Self {
        Self(Arc::new(State::new(ResourceStore::new(bootstrap, trust))))
    }

    /// Builds the gateway of a bootstrap that was read again, with all resources that control planes have sent so
    /// far. Changes of the control planes themselves and of the node's identity take effect at the next start. The
    /// previous bootstrap stays active until [`commit_bootstrap`](Self::commit_bootstrap).
    ///
    /// # Errors
    /// Every contradiction, with its location.
    pub fn prepare_bootstrap(&self, bootstrap: Bootstrap) -> Result<Gateway, Diagnostics> {
        self.0.store().prepare_bootstrap(bootstrap)
    }

    /// Marks the bootstrap that was prepared last as in service.
    pub fn commit_bootstrap(&self) {
        self.0.store().commit_bootstrap();
    }

    /// Returns the files, besides the bootstrap itself, that the most recently read bootstrap references, in service
    /// or not.
    pub fn files(&self) -> Vec<PathBuf> {
        self.0.store().files().to_vec()
    }

    /// Returns the bootstrap that is in service, as it was read.
    pub fn bootstrap(&self) -> Arc<Bootstrap> {
        self.0.store().bootstrap().clone()
    }

    /// Returns the bootstrap that is in service, with the active resources of control planes.
    pub fn active(&self) -> Bootstrap {
        let store = self.0.store();
        Bootstrap { resources: store.active().clone(), ..Bootstrap::clone(store.bootstrap()) }
    }

    /// Returns whether the control planes that the bootstrap names have sent listeners and clusters, or the initial
    /// fetch timeout has expired.
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

    /// Returns the text of `/ready` about rejected resources, and whether they make it fail.
    pub(crate) fn refusals_in_ready(&self) -> (String, bool) {
        let how = self.0.store().trust().refusals_in_ready;
        let refusals = self.0.refusals();
        match how {
            RefusalsInReady::Hide => (String::new(), false),
            RefusalsInReady::Say => (refusals.text(), false),
            RefusalsInReady::Fail => (refusals.text(), refusals.close_something()),
        }
    }

    /// Returns the counts of the control planes' responses and streams.
    pub(crate) fn stats(&self) -> &XdsStats {
        &self.0.stats
    }

    /// Subscribes to the bootstrap's control planes on a dedicated thread, for as long as the process runs.
    ///
    /// # Errors
    /// Fails if a control plane cannot be used as configured, or the thread cannot be started.
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
