//! The task that keeps the certificates of a configuration, across its reloads.

use crate::{Answers, Event, OnDemand, Plan, keeper::Keeper, unix_now};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// Interval between checks: other processes may change files, and clocks may be set.
const TICK: Duration = Duration::from_secs(1);
/// Pause after a state directory turned out to be unusable.
const PAUSE: Duration = Duration::from_secs(30);

/// Orders and renews the certificates of a plan.
pub struct Runner {
    plans: watch::Receiver<Option<Plan>>,
    answers: Arc<Answers>,
    on_demand: Arc<OnDemand>,
    events: mpsc::Sender<Event>,
}

impl Runner {
    /// Creates a runner that keeps the last plan sent and, if the plan allows it, names requested through
    /// `on_demand`. It publishes challenge responses in `answers`, and sends events.
    pub fn new(
        plans: watch::Receiver<Option<Plan>>,
        answers: Arc<Answers>,
        on_demand: Arc<OnDemand>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { plans, answers, on_demand, events }
    }

    /// Runs until the gateway closes the channel. A new plan interrupts the current order: an unfinished order costs
    /// the authority nothing, and the next one reuses completed validations.
    pub async fn run(mut self) {
        loop {
            let plan = self.plans.borrow_and_update().clone();
            let mut plans = self.plans.clone();
            tokio::select! {
                changed = plans.changed() => if changed.is_err() { return },
                () = self.keep(plan) => return,
            }
        }
    }

    /// Runs until the receiver of events is closed.
    async fn keep(&self, plan: Option<Plan>) {
        let Some(plan) = plan else {
            self.on_demand.forget();
            return std::future::pending().await;
        };
        let mut keeper = loop {
            match Keeper::open(plan.clone(), &self.answers, &self.on_demand, self.events.clone()) {
                Ok(keeper) => break keeper,
                Err(error) => {
                    tracing::error!(%error, "no certificate can be ordered");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        };
        let fleet = keeper.fleet();
        let order = async {
            while !self.events.is_closed() {
                keeper.pass(unix_now()).await;
                tokio::time::sleep(TICK).await;
            }
        };
        match fleet {
            None => order.await,
            Some(fleet) => tokio::select! {
                () = order => {}
                () = fleet.attend() => {}
            },
        }
    }
}
