//! The thread that orders and renews certificates, while the configuration contains orders.

use super::background;
use crate::telemetry::metrics;
use quadrille_acme::{Answers, Event, KeyServers, OnDemand, Plan, Runner, StateDirectory};
use quadrille_config::{Diagnostic, model::Gateway};
use quadrille_resumption::Records;
use std::{io, sync::Arc, thread};
use tokio::sync::{mpsc, watch};

/// Capacity of the queue of events to the gateway, which processes them between reloads.
const QUEUE: usize = 64;

/// Certificate orders of this process.
pub(crate) struct Certificates {
    plans: watch::Sender<Option<Plan>>,
    answers: Arc<Answers>,
    on_demand: Arc<OnDemand>,
    events: mpsc::Receiver<Event>,
    /// The runner, until its thread has started.
    runner: Option<Runner>,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let (plans, wanted) = watch::channel(None);
        let (sender, events) = mpsc::channel(QUEUE);
        let answers: Arc<Answers> = Arc::default();
        let on_demand: Arc<OnDemand> = Arc::default();
        let runner = Some(Runner::new(wanted, Arc::clone(&answers), Arc::clone(&on_demand), sender));
        Self { plans, answers, on_demand, events, runner }
    }

    /// Returns the responses of listeners to ACME challenges.
    pub(crate) fn answers(&self) -> Arc<Answers> {
        Arc::clone(&self.answers)
    }

    /// Returns the queue of names for which clients requested a certificate that does not exist.
    pub(crate) fn on_demand(&self) -> Arc<OnDemand> {
        Arc::clone(&self.on_demand)
    }

    /// Creates the directory of issued certificates, so that it can be watched.
    pub(crate) fn prepare(model: &Gateway) -> Result<(), Vec<Diagnostic>> {
        let Some(plan) = Plan::of(model) else { return Ok(()) };
        let opened = StateDirectory::open(&plan.acme.state);
        opened.map(drop).map_err(|error| vec![Diagnostic::new(&plan.acme.place, error.to_string())])
    }

    /// Orders the certificates of this model from now on, with keys on these key servers where the model requires it,
    /// and shares them with the fleet.
    pub(crate) fn follow(&mut self, model: &Gateway, key_servers: &KeyServers, fleet: Option<&Records>) {
        let plan = Plan::of(model);
        let plan = plan.map(|plan| plan.with_key_servers(key_servers).shared_with(fleet.cloned()));
        if plan.is_some()
            && let Some(runner) = self.runner.take()
            && let Err(error) = start(runner)
        {
            tracing::error!(%error, "cannot start the thread that orders certificates");
        }
        self.plans.send_if_modified(|known| {
            let changed = *known != plan;
            *known = plan;
            changed
        });
    }

    /// Resolves when a new certificate was written to its file.
    pub(crate) async fn installed(&mut self) {
        loop {
            match self.events.recv().await {
                Some(Event::Installed) => {
                    metrics::acme_order(true);
                    return;
                }
                Some(Event::Received) => return,
                Some(Event::Failed) => metrics::acme_order(false),
                Some(Event::Asked(result)) => metrics::acme_asked(result),
                Some(Event::RecordRefused) => metrics::acme_record_refused(),
                Some(Event::Fleet { reachable }) => metrics::acme_fleet(reachable),
                None => std::future::pending().await,
            }
        }
    }
}

/// Starts the thread, which also generates keys and computes signatures, outside the event loops.
fn start(runner: Runner) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("acme".to_owned()).spawn(move || {
        background::lower_priority();
        runtime.block_on(runner.run());
    })?;
    Ok(())
}
