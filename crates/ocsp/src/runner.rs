//! Background renewal of the staples of a configuration, across reloads.

use crate::{
    Failure, Staple, State, UnixTime, Validity,
    fetch::{Way, fetch},
    schedule, unix_now,
};
use std::{collections::HashMap, sync::Arc, time::Duration};
use tokio::{
    sync::{Semaphore, watch},
    task::JoinHandle,
};

/// Maximum number of concurrent requests.
const AT_A_TIME: usize = 16;
/// Maximum sleep time, as clocks are adjusted and machines are suspended.
const LONGEST_WAIT: i64 = 60;

/// Renews the wanted staples.
pub struct Runner {
    wanted: watch::Receiver<Vec<Arc<Staple>>>,
    /// Called for every response and every failed request.
    observe: fn(Result<(), &Failure>),
    places: Arc<Semaphore>,
}

/// Renewal state of a staple.
struct Keeper {
    staple: Arc<Staple>,
    observe: fn(Result<(), &Failure>),
    places: Arc<Semaphore>,
    /// Number of consecutive failures.
    failures: u32,
    due: UnixTime,
    /// Whether a response was logged.
    announced: bool,
    /// Whether the expiry of the response was logged.
    mourned: bool,
}

impl Runner {
    /// Creates a runner that renews the staples sent last.
    pub fn new(wanted: watch::Receiver<Vec<Arc<Staple>>>, observe: fn(Result<(), &Failure>)) -> Self {
        Self { wanted, observe, places: Arc::new(Semaphore::new(AT_A_TIME)) }
    }

    /// Runs until the channel is closed. Renewal of staples that remain wanted is not interrupted.
    pub async fn run(mut self) {
        let mut kept: HashMap<*const Staple, JoinHandle<()>> = HashMap::new();
        loop {
            let wanted = self.wanted.borrow_and_update().clone();
            let is_wanted = |known: &*const Staple| wanted.iter().any(|staple| Arc::as_ptr(staple) == *known);
            kept.retain(|known, task| {
                let stays = is_wanted(known);
                if !stays {
                    task.abort();
                }
                stays
            });
            for staple in wanted {
                let keep = || tokio::spawn(self.keeper(&staple).keep());
                kept.entry(Arc::as_ptr(&staple)).or_insert_with(keep);
            }
            if self.wanted.changed().await.is_err() {
                return;
            }
        }
    }

    fn keeper(&self, staple: &Arc<Staple>) -> Keeper {
        Keeper {
            staple: Arc::clone(staple),
            observe: self.observe,
            places: Arc::clone(&self.places),
            failures: 0,
            due: staple.validity().map_or(UnixTime::MIN, |known| {
                // A response from a previous process keeps its age.
                schedule::renewal(known, known.this_update, fastrand::f64())
            }),
            announced: false,
            mourned: false,
        }
    }
}

impl Keeper {
    async fn keep(mut self) {
        loop {
            let now = unix_now();
            self.mourn(now);
            if self.due <= now {
                self.renew().await;
                continue;
            }
            let wait = (self.due - now).clamp(1, LONGEST_WAIT);
            tokio::time::sleep(Duration::from_secs(wait.unsigned_abs())).await;
        }
    }

    async fn renew(&mut self) {
        // Some responders do not support GET.
        let way = if self.failures.is_multiple_of(2) { Way::Get } else { Way::Post };
        let fetched = {
            let _place = self.places.acquire().await;
            fetch(&self.staple.inquiry, way).await
        };
        let now = unix_now();
        let checked = fetched.and_then(|answer| {
            let validity = self.staple.offer(&answer, now)?;
            self.staple.keep(&answer);
            Ok(validity)
        });
        (self.observe)(checked.as_ref().map(|_| ()));
        match checked {
            Ok(validity) => self.succeeded(validity, now),
            Err(failure) => self.failed(&failure, now),
        }
    }

    fn succeeded(&mut self, validity: Validity, now: UnixTime) {
        self.due = schedule::renewal(validity, now, fastrand::f64());
        let (again_in_s, not_after) = (self.due - now, validity.next_update);
        if !self.announced || self.failures > 0 {
            tracing::info!(
                certificate = self.staple.title,
                not_after,
                again_in_s,
                "an OCSP response is stapled"
            );
        } else {
            tracing::debug!(
                certificate = self.staple.title,
                not_after,
                again_in_s,
                "a newer OCSP response is stapled"
            );
        }
        (self.failures, self.announced, self.mourned) = (0, true, false);
    }

    /// Logs the first failure until the next success.
    fn failed(&mut self, failure: &Failure, now: UnixTime) {
        self.failures = self.failures.saturating_add(1);
        let pause = schedule::pause(self.failures, fastrand::f64());
        self.due = now + pause;
        let certificate = &self.staple.title;
        if self.failures > 1 {
            tracing::debug!(certificate, %failure, again_in_s = pause, "no OCSP response to staple");
            return;
        }
        match (failure, self.staple.state(now), self.staple.is_required) {
            (Failure::Revoked, ..) => {
                tracing::error!(
                    certificate,
                    "the authority has revoked this certificate: nothing is stapled to it"
                );
            }
            (_, State::Valid(not_after), _) => {
                tracing::warn!(certificate, %failure, not_after, "no newer OCSP response; stapling the current one");
            }
            (_, _, true) => {
                tracing::error!(certificate, %failure, "no OCSP response to staple, and clients reject this certificate without one");
            }
            (_, _, false) => tracing::warn!(certificate, %failure, "no OCSP response to staple"),
        }
    }

    fn mourn(&mut self, now: UnixTime) {
        let has_expired = self.staple.validity().is_some_and(|validity| validity.next_update <= now);
        if !has_expired || self.mourned {
            return;
        }
        self.mourned = true;
        let certificate = &self.staple.title;
        if self.staple.is_required {
            tracing::error!(
                certificate,
                "its OCSP response has expired, and clients reject this certificate without one"
            );
        } else {
            tracing::warn!(certificate, "its OCSP response has expired, and there is no newer one to staple");
        }
    }
}
