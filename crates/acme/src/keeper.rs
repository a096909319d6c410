//! One plan's certificates: what each has, when it is due, and what happened to its orders.

use crate::{
    AcmeError, Event, Issued, Plan, StateDirectory, UnixTime, Validity, Wanted, Window, account,
    https::Https, order::Ordering, progress::Progress, publisher::Publisher, schedule, unix_now,
};
use instant_acme::Account;
use std::{
    collections::HashMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};
use tokio::sync::mpsc;

/// For a whole order: all that is waited for in it has limits that come to less.
const LONGEST: Duration = Duration::from_secs(1200);
/// How often an alert is repeated in the log.
const REPEAT: i64 = 3600;

/// Keeps the certificates of one plan.
pub(crate) struct Keeper {
    plan: Plan,
    state: StateDirectory,
    https: Https,
    account: Option<Account>,
    publisher: Publisher,
    events: mpsc::Sender<Event>,
    progress: Progress,
    known: HashMap<PathBuf, Known>,
}

/// What is known of a certificate.
struct Known {
    /// Of the file when it was read.
    modified: Option<SystemTime>,
    validity: Option<Validity>,
    /// Spreads renewals, from 0 to 1.
    chance: f64,
    window: Option<Window>,
    /// When to ask the authority for the window.
    ask_at: UnixTime,
    warned_at: UnixTime,
}

impl Keeper {
    pub(crate) fn open(
        plan: Plan,
        publisher: Publisher,
        events: mpsc::Sender<Event>,
    ) -> Result<Self, AcmeError> {
        let state = StateDirectory::open(&plan.acme.state)?;
        let https = Https::new(&plan.acme)?;
        let progress = Progress::read(&state);
        Ok(Self { plan, state, https, account: None, publisher, events, progress, known: HashMap::new() })
    }

    /// Orders what is due now, one after the other.
    pub(crate) async fn pass(&mut self, now: UnixTime) {
        for wanted in self.plan.wanted.clone() {
            self.look(&wanted);
            self.obey(&wanted);
            self.ask_for_window(&wanted, now).await;
            self.warn_if_late(&wanted, now);
            if self.due(&wanted) <= now {
                self.order(&wanted).await;
            }
        }
    }

    /// Reads the file if it is another than before.
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

    /// An operator who wants a certificate renewed leaves a file.
    fn obey(&mut self, wanted: &Wanted) {
        if fs::remove_file(wanted.renewal_request()).is_ok() {
            tracing::info!(certificate = wanted.title(), "an operator wants it renewed");
            self.progress.clear(&wanted.id());
            if let Some(known) = self.known.get_mut(&wanted.file) {
                (known.validity, known.window) = (None, None);
            }
        }
    }

    fn due(&self, wanted: &Wanted) -> UnixTime {
        let id = wanted.id();
        let Some(known) = self.known.get(&wanted.file) else { return UnixTime::MAX };
        let due = schedule::due(known.validity, known.window, known.chance);
        due.max(self.progress.failures(&id).retry_at)
            .max(schedule::soonest(self.progress.ordered_at(&id), known.validity))
    }

    /// Asks the authority when it wants the certificate renewed. What it does not say, or says wrongly, is no harm: then
    /// the certificate's life decides.
    async fn ask_for_window(&mut self, wanted: &Wanted, now: UnixTime) {
        let Some(known) = self.known.get(&wanted.file) else { return };
        let Some(validity) = known.validity.filter(|_| known.ask_at <= now) else { return };
        let before = known.window;
        let asked = self.window(&wanted.file).await;
        let (again, window) = match asked {
            Ok((window, again)) => (again.clamp(60, 24 * 3600), window),
            Err(error) => {
                tracing::debug!(%error, certificate = wanted.title(), "the authority does not say when to renew");
                self.account = None;
                (1800, before)
            }
        };
        // Of a certificate of minutes it is asked more than once.
        let again = again.min((validity.life() / 4).max(5));
        if let Some(known) = self.known.get_mut(&wanted.file) {
            (known.window, known.ask_at) = (window, now + again);
        }
    }

    /// The window, and for how many seconds it holds.
    async fn window(&mut self, file: &Path) -> Result<(Option<Window>, i64), AcmeError> {
        let day = 24 * 3600;
        let Some(identifier) = Issued::read(file).and_then(|issued| issued.identifier()) else {
            return Ok((None, day));
        };
        match self.account().await?.renewal_info(&identifier).await {
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
                "less than a third of its life is left, and it has not been renewed"
            );
        }
    }

    async fn account(&mut self) -> Result<Account, AcmeError> {
        if let Some(account) = &self.account {
            return Ok(account.clone());
        }
        let account = account::open(&self.plan.acme, &self.state, &self.https).await?;
        self.account = Some(account.clone());
        Ok(account)
    }

    async fn order(&mut self, wanted: &Wanted) {
        let lock = match self.state.lock() {
            Ok(Some(lock)) => lock,
            // Another process orders: what it writes is seen with the next look.
            Ok(None) => return,
            Err(error) => return self.failed(wanted, &error).await,
        };
        self.progress = Progress::read(&self.state);
        let before = modified(&wanted.file);
        if self.known.get(&wanted.file).is_some_and(|known| known.modified != before)
            || self.due(wanted) > unix_now()
        {
            return;
        }
        let ordering = tokio::time::timeout(LONGEST, self.obtain(wanted));
        let obtained = ordering
            .await
            .unwrap_or_else(|_| Err(AcmeError::Unreachable("not done in 20 minutes".to_owned())));
        drop(lock);
        match obtained {
            Ok(issued) => self.obtained(wanted, &issued).await,
            Err(error) => self.failed(wanted, &error).await,
        }
    }

    async fn obtain(&mut self, wanted: &Wanted) -> Result<Issued, AcmeError> {
        let account = self.account().await?;
        let ordering = Ordering { acme: &self.plan.acme, account: &account, publisher: &self.publisher };
        ordering.obtain(wanted, Issued::read(&wanted.file).as_ref()).await
    }

    async fn obtained(&mut self, wanted: &Wanted, issued: &Issued) {
        let now = unix_now();
        if let Err(error) = self.progress.ordered(&wanted.id(), now, &self.state) {
            tracing::error!(%error, "what was ordered could not be noted");
        }
        let Validity { not_after, .. } = issued.validity;
        tracing::info!(certificate = wanted.title(), not_after, "a certificate has been issued");
        if not_after <= now {
            tracing::error!(
                certificate = wanted.title(),
                "it has expired already: the clock of this machine is wrong"
            );
        }
        let _ = self.events.send(Event::Installed).await;
    }

    async fn failed(&mut self, wanted: &Wanted, error: &AcmeError) {
        self.account = None;
        if let AcmeError::NoAccount(_) = error
            && let Err(error) = account::forget(&self.plan.acme, &self.state)
        {
            tracing::error!(%error, "the account that the authority does not know stays");
        }
        let (id, now) = (wanted.id(), unix_now());
        let validity = self.known.get(&wanted.file).and_then(|known| known.validity);
        let asked = self.https.take_refused_for().and_then(|wait| i64::try_from(wait.as_secs()).ok());
        let before = self.progress.failures(&id);
        let failures = schedule::after_failure(before, error.counts(), asked, validity, fastrand::f64(), now);
        tracing::warn!(certificate = wanted.title(), %error, again_in_s = failures.retry_at - now, "no certificate could be ordered");
        if let Err(error) = self.progress.failed(&id, failures, &self.state) {
            tracing::error!(%error, "what failed could not be noted");
        }
        let _ = self.events.send(Event::Failed).await;
    }
}

fn modified(file: &Path) -> Option<SystemTime> {
    fs::metadata(file).and_then(|metadata| metadata.modified()).ok()
}
