//! Keeps the certificates of a configuration, whatever that becomes.

use crate::{Answers, Event, OnDemand, Plan, keeper::Keeper, unix_now};
use std::{sync::Arc, time::Duration};
use tokio::sync::{mpsc, watch};

/// How often it looks what is due: files may have been changed by others, and clocks set.
const TICK: Duration = Duration::from_secs(1);
/// After a state directory that cannot be used.
const PAUSE: Duration = Duration::from_secs(30);

/// Orders and renews what a plan wants.
pub struct Runner {
    plans: watch::Receiver<Option<Plan>>,
    answers: Arc<Answers>,
    on_demand: Arc<OnDemand>,
    events: mpsc::Sender<Event>,
}

impl Runner {
    /// It keeps the plan that was sent last, and what clients ask for `on_demand` if the plan allows that, answers
    /// challenges by `answers`, and tells of what has happened.
    pub fn new(
        plans: watch::Receiver<Option<Plan>>,
        answers: Arc<Answers>,
        on_demand: Arc<OnDemand>,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self { plans, answers, on_demand, events }
    }

    /// Ends with the gateway's end of the channel. A new plan interrupts what is under way: an order that was begun
    /// costs the authority nothing, and the next one goes on with what has been validated.
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

    /// Until there is nobody to tell.
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
