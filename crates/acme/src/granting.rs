//! Decisions about names that clients request on demand.

use crate::{
    AcmeError, OnDemand, Plan, StateDirectory, UnixTime, Wanted,
    ask::Asker,
    on_demand::{FILE, Granted},
    order_lock::OrderLock,
};
use quadrille_config::model::{AcmeOnDemand, AcmeOrder};
use std::sync::Arc;

/// Maximum number of requests in a row, so that due orders are not delayed.
const IN_A_ROW: u32 = 8;
/// Seconds for which a denial, a missing response, and giving up after repeated failures remain in effect.
const NO: i64 = 600;
const NO_ANSWER: i64 = 30;
const FAILED: i64 = 24 * 3600;

/// The granted names of a state directory.
pub(crate) struct Granting {
    settings: Option<AcmeOnDemand>,
    state: StateDirectory,
    on_demand: Arc<OnDemand>,
    granted: Granted,
    asker: Asker,
    asked: u32,
    /// The last problem logged.
    complaint: Option<String>,
}

/// Outcome for a requested name.
pub(crate) enum Question {
    /// A decision, as its metric label.
    Answered(&'static str),
    /// The service allows this name.
    MayBeOrdered(String),
}

impl Granting {
    pub(crate) fn new(plan: &Plan, state: &StateDirectory, on_demand: &Arc<OnDemand>) -> Self {
        let settings = plan.acme.on_demand.clone();
        let granted = settings.as_ref().map(|_| Granted::read(state)).unwrap_or_default();
        if settings.is_some() {
            on_demand.know(granted.clone());
        } else {
            on_demand.forget();
        }
        let (state, on_demand) = (state.clone(), Arc::clone(on_demand));
        let asker = Asker::default();
        Self { settings, state, on_demand, granted, asker, asked: 0, complaint: None }
    }

    /// Returns the orders for granted names.
    pub(crate) fn orders(&self) -> impl Iterator<Item = AcmeOrder> {
        self.settings.iter().flat_map(|settings| self.granted.orders(settings))
    }

    /// Reloads the granted names, which another process or gateway may have changed.
    pub(crate) fn look(&mut self) {
        self.asked = 0;
        if self.settings.is_none() {
            return;
        }
        let granted = Granted::read(&self.state);
        if granted != self.granted {
            self.on_demand.know(granted.clone());
            self.granted = granted;
        }
    }

    /// Sends the next request to the service; `None` if no name is pending, or other orders are due first.
    pub(crate) async fn next(&mut self, now: UnixTime) -> Option<Question> {
        let settings = self.settings.clone()?;
        let name = self.on_demand.next().filter(|_| self.asked < IN_A_ROW)?;
        self.asked += 1;
        if let Some((reason, until)) = self.granted.limit(&settings, now) {
            self.complain(&name, reason);
            self.on_demand.refuse(&name, now, until);
            return Some(Question::Answered("limited"));
        }
        match self.asker.may_be_ordered(&settings, &name).await {
            Ok(true) => {
                self.complaint = None;
                Some(Question::MayBeOrdered(name))
            }
            Ok(false) => {
                tracing::debug!(name, "no certificate may be ordered for this name");
                self.on_demand.refuse(&name, now, now + NO);
                Some(Question::Answered("denied"))
            }
            Err(problem) => {
                self.complain(&name, &format!("cannot query {}: {problem}", settings.ask));
                self.on_demand.refuse(&name, now, now + NO_ANSWER);
                Some(Question::Answered("unreachable"))
            }
        }
    }

    /// Stores a name that was allowed.
    pub(crate) async fn grant(
        &mut self,
        name: &str,
        now: UnixTime,
        lock: &OrderLock,
    ) -> Result<(), AcmeError> {
        let mut granted = Granted::read(&self.state);
        granted.insert(name, now);
        lock.store(FILE, &granted.to_json()?).await?;
        tracing::info!(name, "a certificate is ordered on demand");
        self.on_demand.know(granted.clone());
        self.granted = granted;
        Ok(())
    }

    /// Removes a granted name whose certificate cannot be issued. It may be requested again in a day. Returns whether
    /// it was removed.
    pub(crate) async fn give_up(&mut self, wanted: &Wanted, now: UnixTime, lock: &OrderLock) -> bool {
        let [name] = &wanted.order.names[..] else { return false };
        let mut granted = Granted::read(&self.state);
        if !granted.remove(name) {
            return false;
        }
        let kept = async { lock.store(FILE, &granted.to_json()?).await };
        if let Err(error) = kept.await {
            tracing::error!(%error, name, "a name whose certificate cannot be issued could not be removed");
            return false;
        }
        tracing::warn!(name, "given up: its certificate was ordered on demand and could not be issued");
        self.on_demand.know(granted.clone());
        self.on_demand.refuse(name, now, now + FAILED);
        self.granted = granted;
        true
    }

    /// Logs a problem once, until it changes.
    fn complain(&mut self, name: &str, problem: &str) {
        if self.complaint.as_deref() != Some(problem) {
            tracing::warn!(name, problem, "no certificate is ordered on demand; existing ones stay in use");
            self.complaint = Some(problem.to_owned());
        }
    }
}
