//! Keeps one plan's certificates: their state, when each is due, and the results of their orders.

use crate::{
    AcmeError, Answers, Event, Issued, OnDemand, Plan, StateDirectory, UnixTime, Validity, Wanted, Window,
    account, files,
    fleet::Fleet,
    granting::{Granting, Question},
    https::Https,
    order::Ordering,
    order_key::OrderKey,
    order_lock::OrderLock,
    progress::{self, Progress},
    schedule, unix_now,
};
use quadrille_keyless::wire::Ski;
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc;

/// Time limit of a whole order; the limits of its steps add up to less.
const LONGEST: Duration = Duration::from_secs(1200);
/// Interval in seconds at which an alert is logged again.
const REPEAT: i64 = 3600;

/// Number of failed orders in a row after which a granted name that never had a certificate is given up.
const GIVEN_UP: u32 = 4;

/// Keeps the certificates of one plan.
pub(crate) struct Keeper {
    plan: Plan,
    state: StateDirectory,
    https: Https,
    answers: Arc<Answers>,
    granting: Granting,
    fleet: Option<Arc<Fleet>>,
    events: mpsc::Sender<Event>,
    progress: Progress,
    /// Modification time of the progress file when it was read.
    progress_modified: Option<SystemTime>,
    known: HashMap<PathBuf, Known>,
}

/// Known state of a certificate.
struct Known {
    /// Modification time of its file when it was read.
    modified: Option<SystemTime>,
    validity: Option<Validity>,
    /// Random number from 0 to 1 that spreads renewals.
    chance: f64,
    window: Option<Window>,
    /// When to query the authority for the renewal window.
    ask_at: UnixTime,
    warned_at: UnixTime,
}

impl Keeper {
    pub(crate) fn open(
        plan: Plan,
        answers: &Arc<Answers>,
        on_demand: &Arc<OnDemand>,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, AcmeError> {
        let state = StateDirectory::open(&plan.acme.state)?;
        let https = Https::new(&plan.acme)?;
        answers.belong_to(&plan);
        let fleet = Fleet::of(&plan, &state, answers, &events);
        Ok(Self {
            granting: Granting::new(&plan, &state, on_demand),
            plan,
            state,
            https,
            answers: Arc::clone(answers),
            fleet,
            events,
            progress: Progress::default(),
            progress_modified: None,
            known: HashMap::new(),
        })
    }

    /// Returns the fleet; the caller must [attend](Fleet::attend) it.
    pub(crate) fn fleet(&self) -> Option<Arc<Fleet>> {
        self.fleet.clone()
    }

    /// Orders the certificates that are due now, one after the other.
    pub(crate) async fn pass(&mut self, now: UnixTime) {
        self.publish().await;
        self.grant(now).await;
        for wanted in self.wanted() {
            self.look_at_progress();
            self.look(&wanted);
            self.obey(&wanted);
            self.ask_for_window(&wanted, now).await;
            self.warn_if_late(&wanted, now);
            if self.due(&wanted, now) <= now {
                self.order(&wanted).await;
            }
        }
    }

    /// Publishes to the fleet what only this gateway has: it had certificates before it joined, or Redis has lost
    /// them.
    async fn publish(&mut self) {
        let Some(fleet) = &self.fleet else { return };
        let names = fleet.unpublished();
        if names.is_empty() {
            return;
        }
        let Ok(Some(lock)) = self.take_lock().await else { return };
        if let Err(error) = lock.hold(lock.publish_files(&names)).await {
            tracing::warn!(%error, "this gateway's certificates and account could not be shared with the fleet");
        }
        lock.end().await;
    }

    /// Returns the configured certificates and those granted on demand.
    fn wanted(&self) -> Vec<Wanted> {
        let granted = self.granting.orders().map(|order| Wanted::new(&self.plan.acme, order));
        let is_new = |one: &Wanted| !self.plan.wanted.iter().any(|wanted| wanted.file == one.file);
        self.plan.wanted.iter().cloned().chain(granted.filter(is_new)).collect()
    }

    /// Handles names that clients request on demand.
    async fn grant(&mut self, now: UnixTime) {
        self.granting.look();
        while let Some(question) = self.granting.next(now).await {
            let outcome = match question {
                Question::Answered(outcome) => outcome,
                // The name stays pending while another member orders.
                Question::MayBeOrdered(name) => {
                    let Ok(Some(lock)) = self.take_lock().await else { return };
                    let granted = self.granting.grant(&name, now, &lock).await;
                    lock.end().await;
                    match granted {
                        Ok(()) => {
                            self.tell_if_there(&name).await;
                            "granted"
                        }
                        Err(error) => {
                            tracing::error!(%error, name, "a name that is ordered on demand could not be stored");
                            return;
                        }
                    }
                }
            };
            let _ = self.events.send(Event::Asked(outcome)).await;
        }
    }

    /// Sends an event if the certificate of a name granted earlier already exists.
    async fn tell_if_there(&self, name: &str) {
        if self.wanted().iter().any(|wanted| wanted.order.names == [name] && wanted.file.exists()) {
            let _ = self.events.send(Event::Received).await;
        }
    }

    async fn take_lock(&self) -> Result<Option<OrderLock>, AcmeError> {
        OrderLock::take(&self.state, &self.answers, self.fleet.as_ref()).await
    }

    /// Reloads the progress file, which another process or gateway may have written.
    fn look_at_progress(&mut self) {
        let modified = modified(&self.state.path(progress::FILE));
        if self.progress_modified != modified {
            (self.progress, self.progress_modified) = (Progress::read(&self.state), modified);
        }
    }

    /// Reads the certificate's file if it has changed.
    fn look(&mut self, wanted: &Wanted) {
        let modified = modified(&wanted.file);
        if self.known.get(&wanted.file).is_some_and(|known| known.modified == modified) {
            return;
        }
        let validity = Issued::read(&wanted.file).map(|issued| issued.validity);
        let chance = fastrand::f64();
        let known = Known { modified, validity, chance, window: None, ask_at: 0, warned_at: 0 };
        self.known.insert(wanted.file.clone(), known);
    }

    /// Handles a renewal request, which an operator leaves as a file.
    fn obey(&mut self, wanted: &Wanted) {
        if fs::remove_file(wanted.renewal_request()).is_ok() {
            tracing::info!(certificate = wanted.title(), "an operator requests its renewal");
            self.progress.clear(&wanted.id());
            if let Some(known) = self.known.get_mut(&wanted.file) {
                (known.validity, known.window) = (None, None);
            }
        }
    }

    fn due(&self, wanted: &Wanted, now: UnixTime) -> UnixTime {
        let id = wanted.id();
        let Some(known) = self.known.get(&wanted.file) else { return UnixTime::MAX };
        let due = schedule::due(known.validity, known.window, known.chance);
        let stored = |time| schedule::if_plausible(time, now);
        due.max(stored(self.progress.failures(&id).retry_at))
            .max(schedule::soonest(stored(self.progress.ordered_at(&id)), known.validity))
    }

    /// Queries the authority for the renewal window (ARI). If the response is missing or invalid, the certificate's
    /// lifetime decides.
    async fn ask_for_window(&mut self, wanted: &Wanted, now: UnixTime) {
        let Some(known) = self.known.get(&wanted.file) else { return };
        let Some(validity) = known.validity.filter(|_| known.ask_at <= now) else { return };
        let before = known.window;
        let asked = self.window(&wanted.file).await;
        let (again, window) = match asked {
            Ok((window, again)) => (again.clamp(60, 24 * 3600), window),
            Err(error) => {
                tracing::debug!(%error, certificate = wanted.title(), "the authority does not say when to renew");
                (1800, before)
            }
        };
        // Short-lived certificates are queried more often.
        let again = again.min((validity.life() / 4).max(5));
        if let Some(known) = self.known.get_mut(&wanted.file) {
            (known.window, known.ask_at) = (window, now + again);
        }
    }

    /// Returns the window, and the number of seconds for which it is valid.
    async fn window(&mut self, file: &Path) -> Result<(Option<Window>, i64), AcmeError> {
        let day = 24 * 3600;
        let Some(identifier) = Issued::read(file).and_then(|issued| issued.identifier()) else {
            return Ok((None, day));
        };
        let Some(account) = account::kept(&self.plan.acme, &self.state, &self.https).await? else {
            return Ok((None, day));
        };
        match account.renewal_info(&identifier).await {
            Ok((info, again)) => {
                let window = info.suggested_window;
                let window =
                    Window { start: window.start.unix_timestamp(), end: window.end.unix_timestamp() };
                Ok((Some(window), i64::try_from(again.as_secs()).unwrap_or(day)))
            }
            Err(instant_acme::Error::Unsupported(_)) => Ok((None, day)),
            Err(error) => Err(error.into()),
        }
    }

    fn warn_if_late(&mut self, wanted: &Wanted, now: UnixTime) {
        let Some(known) = self.known.get_mut(&wanted.file) else { return };
        let late = known.validity.filter(|validity| validity.is_late(now) && known.warned_at + REPEAT <= now);
        if let Some(validity) = late {
            known.warned_at = now;
            let left = validity.not_after - now;
            tracing::error!(
                certificate = wanted.title(),
                seconds_left = left,
                "less than a third of its lifetime is left, and it has not been renewed"
            );
        }
    }

    async fn order(&mut self, wanted: &Wanted) {
        let lock = match self.take_lock().await {
            Ok(Some(lock)) => lock,
            // Another member orders; its certificate is picked up at the next check.
            Ok(None) => return,
            Err(error) => return self.failed(wanted, &error, None).await,
        };
        self.look_at_progress();
        let before = modified(&wanted.file);
        let is_other = self.known.get(&wanted.file).is_some_and(|known| known.modified != before);
        let now = unix_now();
        if !is_other && self.due(wanted, now) <= now {
            let before = Issued::read(&wanted.file);
            match lock.hold(self.obtain(wanted, before.as_ref(), &lock)).await {
                Ok(issued) => self.obtained(wanted, &issued, before.as_ref(), &lock).await,
                Err(error) => self.failed(wanted, &error, Some(&lock)).await,
            }
        }
        lock.end().await;
    }

    async fn obtain(
        &mut self,
        wanted: &Wanted,
        before: Option<&Issued>,
        lock: &OrderLock,
    ) -> Result<Issued, AcmeError> {
        let obtaining = async {
            // Generated before the order, which costs the authority resources.
            let key = self.key(wanted, lock).await?;
            let account = account::open(&self.plan.acme, &self.state, &self.https, lock).await?;
            let ordering = Ordering { acme: &self.plan.acme, account: &account, lock, wanted, key: &key };
            ordering.obtain(before).await
        };
        let obtained = tokio::time::timeout(LONGEST, obtaining).await;
        obtained.unwrap_or_else(|_| Err(AcmeError::Unreachable("not finished within 20 minutes".to_owned())))
    }

    /// Returns a new key; on key servers, the one left by a previous order if there is one.
    async fn key(&mut self, wanted: &Wanted, lock: &OrderLock) -> Result<OrderKey, AcmeError> {
        let (id, order) = (wanted.id(), &wanted.order);
        if order.keyless.is_none() {
            return OrderKey::generate(order.key_type).await;
        }
        let none = || AcmeError::KeyServer("this process is not connected to its key servers".to_owned());
        let client = self.plan.client(&id).ok_or_else(none)?;
        if let Some(key) = self.progress.pending_key(&id) {
            return Ok(OrderKey::Remote(key, client));
        }
        let key = OrderKey::generate_on(&client, order.key_type, &order.label()).await?;
        self.progress.set_pending_key(&id, Some(&key));
        self.keep_progress(Some(lock)).await;
        Ok(OrderKey::Remote(key, client))
    }

    /// Removes a key in a separate task: key servers may be slow, and the holder of the lock should not wait for
    /// them.
    fn remove_key(&self, wanted: &Wanted, key: Ski) {
        let Some(client) = self.plan.client(&wanted.id()) else { return };
        let certificate = wanted.title();
        tokio::spawn(async move {
            if let Err(error) = client.remove(key).await {
                tracing::warn!(certificate, %key, %error, "an unused key could not be removed from the key servers");
            }
        });
    }

    async fn obtained(
        &mut self,
        wanted: &Wanted,
        issued: &Issued,
        before: Option<&Issued>,
        lock: &OrderLock,
    ) {
        let now = unix_now();
        let is_remote = wanted.order.keyless.is_some();
        let replaced = before.filter(|_| is_remote).and_then(Issued::key);
        let unneeded = self.progress.ordered(&wanted.id(), now, replaced);
        self.keep_progress(Some(lock)).await;
        if let Some(key) = unneeded {
            self.remove_key(wanted, key);
        }
        let Validity { not_after, .. } = issued.validity;
        tracing::info!(certificate = wanted.title(), not_after, "a certificate has been issued");
        if not_after <= now {
            tracing::error!(
                certificate = wanted.title(),
                "it has already expired: the clock of this machine is wrong"
            );
        }
        let _ = self.events.send(Event::Installed).await;
    }

    async fn failed(&mut self, wanted: &Wanted, error: &AcmeError, lock: Option<&OrderLock>) {
        if let AcmeError::Lease = error {
            // Another member holds the lock; there is no failure of this certificate to record for the others.
            tracing::warn!(certificate = wanted.title(), %error, "no certificate could be ordered");
            return;
        }
        if let (AcmeError::NoAccount(_), Some(lock)) = (error, lock)
            && let Err(error) = lock.forget(&files::account(&self.plan.acme)).await
        {
            tracing::error!(%error, "an account unknown to the authority could not be removed");
        }
        let (id, now) = (wanted.id(), unix_now());
        let validity = self.known.get(&wanted.file).and_then(|known| known.validity);
        let asked = self.https.take_refused_for().and_then(|wait| i64::try_from(wait.as_secs()).ok());
        let before = self.progress.failures(&id);
        let failures = schedule::after_failure(before, error.counts(), asked, validity, fastrand::f64(), now);
        tracing::warn!(certificate = wanted.title(), %error, again_in_s = failures.retry_at - now, "no certificate could be ordered");
        self.progress.failed(&id, failures);
        if let AcmeError::NoKey(_) = error {
            self.progress.set_pending_key(&id, None);
        }
        let is_given_up = failures.count >= GIVEN_UP && validity.is_none();
        self.keep_progress(lock).await;
        if let Some(lock) = lock.filter(|_| is_given_up)
            && self.granting.give_up(wanted, now, lock).await
            && let Some(key) = self.progress.pending_key(&id)
        {
            self.progress.set_pending_key(&id, None);
            self.keep_progress(Some(lock)).await;
            self.remove_key(wanted, key.ski());
        }
        let _ = self.events.send(Event::Failed).await;
    }

    async fn keep_progress(&mut self, lock: Option<&OrderLock>) {
        let Some(lock) = lock else { return };
        let kept = async { lock.store(progress::FILE, &self.progress.to_json()?).await };
        if let Err(error) = kept.await {
            tracing::error!(%error, "the progress of orders could not be stored");
        }
        self.progress_modified = modified(&self.state.path(progress::FILE));
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}
