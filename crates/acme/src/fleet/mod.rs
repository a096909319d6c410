//! What the gateways of a fleet share: the account, the certificates with their keys, what happened to orders, and the
//! answers to challenges. All but the answers are files of the state directory, and Redis has a copy of each, sealed.
//!
//! Every member takes what is newer in Redis than what it has; the one with the lease writes. So a certificate is with
//! all of them in about a second, and a member without Redis has what it had.

mod versions;

use crate::{
    AcmeError, Answers, Event, Issued, Plan, StateDirectory,
    answers::Answer,
    files,
    on_demand::{self, Granted},
    progress,
};
use quadrille_config::model::{AcmeFleet, AcmeOnDemand};
use quadrille_resumption::{FleetError, Lease, Record, Records, Version};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::mpsc;
use versions::Versions;
use zeroize::Zeroizing;

/// The record of the answers, which is no file.
pub(crate) const ANSWERS: &str = "answers";

/// Where certificates are in the state directory, and what their records are called.
const CERTIFICATES: &str = "certificates/";

/// How often members look whether there is anything new,
const POLL: Duration = Duration::from_millis(500);
/// and how often at everything: somebody may have changed it who is no member.
const INSPECTION: Duration = Duration::from_secs(10);
/// Who has just reached the fleet does not order yet: all who are alive shall have said so, or the authority might ask
/// one of them that nobody waited for.
const ARRIVAL: Duration = Duration::from_secs(3);

/// One member.
pub(crate) struct Fleet {
    records: Records,
    state: StateDirectory,
    answers: Arc<Answers>,
    events: mpsc::Sender<Event>,
    is_optional: bool,
    account: String,
    /// Of the plan.
    certificates: Vec<String>,
    /// How others are ordered on demand, if they are.
    on_demand: Option<AcmeOnDemand>,
    known: Mutex<Known>,
    /// Of reading what there is and taking it, and of writing: one of them at a time.
    access: tokio::sync::Mutex<()>,
}

struct Known {
    versions: Versions,
    /// Everything up to here is known.
    newest: Option<Version>,
    /// `None` before the first answer.
    reachable: Option<bool>,
    /// Since when it has been reachable.
    since: Option<Instant>,
    /// Names of files that this member has, and the fleet has not, or has an older one.
    unpublished: BTreeSet<String>,
    /// Names of records that have been complained of.
    damaged: BTreeSet<String>,
}

impl Fleet {
    /// `None` if the plan is for this gateway alone.
    pub(crate) fn of(
        plan: &Plan,
        state: &StateDirectory,
        answers: &Arc<Answers>,
        events: &mpsc::Sender<Event>,
    ) -> Option<Arc<Self>> {
        let records = plan.fleet.clone()?;
        let mut versions = Versions::read(state, records.namespace());
        // Answers are of one process.
        versions.forget(ANSWERS);
        let known = Known {
            versions,
            newest: None,
            reachable: None,
            since: None,
            unpublished: BTreeSet::new(),
            damaged: BTreeSet::new(),
        };
        Some(Arc::new(Self {
            records,
            state: state.clone(),
            answers: Arc::clone(answers),
            events: events.clone(),
            is_optional: plan.acme.fleet == AcmeFleet::Preferred,
            account: files::account(&plan.acme),
            certificates: plan.wanted.iter().map(|wanted| certificate_name(&wanted.id())).collect(),
            on_demand: plan.acme.on_demand.clone(),
            known: Mutex::new(known),
            access: tokio::sync::Mutex::default(),
        }))
    }

    /// Whether to order alone while it cannot be asked who orders.
    pub(crate) fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// Keeps this member up to date.
    pub(crate) async fn attend(&self) {
        let mut inspected: Option<Instant> = None;
        loop {
            let known = self.known().newest;
            let asked = self.records.attend(known.unwrap_or_default()).await;
            self.note(&asked).await;
            match asked {
                Ok(newest) if newest != known || inspected.is_none_or(|at| at.elapsed() > INSPECTION) => {
                    match self.take_all(newest).await {
                        Ok(()) => {
                            inspected = Some(Instant::now());
                            // The others are told at once that this member has it.
                            continue;
                        }
                        Err(error) => self.note::<()>(&Err(error)).await,
                    }
                }
                _ => {}
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// The right to write. With it, everything that there is has been taken.
    pub(crate) async fn lease(&self, term: Duration) -> Result<Option<Lease>, FleetError> {
        if self.has_just_arrived() {
            return Ok(None);
        }
        let known = self.known().versions.newest();
        let lease = self.records.acquire(known, term).await;
        self.note(&lease).await;
        let Some(lease) = lease? else { return Ok(None) };
        let newest = self.known().newest;
        let taken = self.take_all(newest).await;
        if taken.is_err() || self.has_just_arrived() {
            self.release(lease).await;
            return taken.map(|()| None);
        }
        Ok(Some(lease))
    }

    fn has_just_arrived(&self) -> bool {
        let known = self.known();
        known.reachable == Some(true) && known.since.is_some_and(|since| since.elapsed() < ARRIVAL)
    }

    pub(crate) async fn renew(&self, lease: &Lease, term: Duration) -> Result<bool, FleetError> {
        self.records.renew(lease, term).await
    }

    pub(crate) async fn release(&self, lease: Lease) {
        if let Err(error) = self.records.release(lease).await {
            tracing::debug!(%error, "the lease could not be released; it expires by itself");
        }
    }

    /// Writes a record, and has this member take it. A file that Redis cannot take now stays here, and is written again.
    pub(crate) async fn store(&self, lease: &Lease, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        let _access = self.access.lock().await;
        let written = self.records.write(lease, name, content).await;
        self.note(&written).await;
        match written {
            Ok(Some(version)) => {
                self.put(name, content)?;
                let mut known = self.known();
                known.unpublished.remove(name);
                known.versions.set(name, version);
                self.keep(&known)
            }
            Ok(None) => Err(AcmeError::Lease),
            Err(error) if name == ANSWERS => Err(AcmeError::Fleet(error.to_string())),
            Err(_) => self.store_here(name, content),
        }
    }

    /// Has this member take it, and the fleet later.
    pub(crate) fn store_here(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        if name != ANSWERS {
            self.known().unpublished.insert(name.to_owned());
        }
        self.put(name, content)
    }

    /// Files that this member has, and that the others should get from it.
    pub(crate) fn unpublished(&self) -> Vec<String> {
        let known = self.known();
        if known.reachable == Some(true) { known.unpublished.iter().cloned().collect() } else { Vec::new() }
    }

    /// Writes what the fleet has not.
    pub(crate) async fn publish_files(&self, lease: &Lease, names: &[String]) -> Result<(), AcmeError> {
        for name in names {
            if !self.known().unpublished.contains(name) {
                continue;
            }
            match files::read(&self.state.path(name))? {
                Some(content) => self.store(lease, name, &content).await?,
                None => _ = self.known().unpublished.remove(name),
            }
        }
        Ok(())
    }

    /// Whether, in this time, every member that is alive has got what was written last.
    pub(crate) async fn all_know(&self, time: Duration) -> bool {
        let version = self.known().versions.newest();
        let end = Instant::now() + time;
        while Instant::now() < end {
            if matches!(self.records.behind(version).await, Ok(0)) {
                return true;
            }
            tokio::time::sleep(POLL / 5).await;
        }
        false
    }

    /// Takes every record that is newer than what is here.
    async fn take_all(&self, newest: Option<Version>) -> Result<(), FleetError> {
        let _access = self.access.lock().await;
        let mut names = self.names();
        let mut changed = false;
        loop {
            let records = self.records.read(&names).await?;
            for (name, record) in names.iter().zip(records) {
                changed |= self.take(name, record).await;
            }
            // Names that were granted on demand have records of their own.
            let known = std::mem::replace(&mut names, self.names());
            if known == names {
                break;
            }
        }
        self.known().newest = newest;
        if changed {
            let _ = self.events.send(Event::Received).await;
        }
        Ok(())
    }

    fn names(&self) -> Vec<String> {
        let own = [&self.account, progress::FILE, ANSWERS].map(str::to_owned);
        let certificates = self.certificates.iter().cloned();
        let Some(on_demand) = &self.on_demand else {
            return own.into_iter().chain(certificates).collect();
        };
        let granted = Granted::read(&self.state).files(on_demand);
        let granted = granted.into_iter().filter(|name| !self.certificates.contains(name));
        own.into_iter().chain([on_demand::FILE.to_owned()]).chain(certificates).chain(granted).collect()
    }

    /// Whether there is a new certificate now.
    async fn take(&self, name: &str, record: Record) -> bool {
        let (version, content) = match record {
            Record::Sealed(version, content) => (version, content),
            Record::Absent => {
                self.lacks(name);
                return false;
            }
            Record::Damaged => {
                self.refuse(name, "is not this fleet's, or has been changed").await;
                return false;
            }
        };
        let known = self.known().versions.get(name);
        if version < known {
            self.refuse(name, "is older than what this gateway has had from there").await;
            return false;
        }
        self.known().damaged.remove(name);
        if version == known && (name == ANSWERS || self.has(name, &content)) {
            return false;
        }
        match self.install(name, version, &content) {
            Ok(changed) => changed,
            Err(error) => {
                self.refuse(name, &error.to_string()).await;
                false
            }
        }
    }

    fn install(&self, name: &str, version: Version, content: &Zeroizing<Vec<u8>>) -> Result<bool, AcmeError> {
        let is_certificate = name.starts_with(CERTIFICATES);
        let mut is_older = false;
        let is_same = self.reads(name).is_some_and(|own| own == *content);
        if is_certificate && !is_same {
            let garbage = || AcmeError::Garbage("it holds no certificate".to_owned());
            let new = Issued::parse(content).ok_or_else(garbage)?;
            let own = Issued::read(&self.state.path(name));
            is_older = own.is_some_and(|own| own.validity.not_before > new.validity.not_before);
        }
        if name == self.account && !is_same && self.known().versions.get(name) == Version::default() {
            // The account that this gateway had alone: certificates that were ordered with it may have to be revoked.
            files::put_aside(&self.state.path(name))?;
        }
        if !is_older {
            self.put(name, content)?;
        }
        let mut known = self.known();
        known.versions.set(name, version);
        if is_older {
            known.unpublished.insert(name.to_owned())
        } else {
            known.unpublished.remove(name)
        };
        self.keep(&known)?;
        Ok(is_certificate && !is_older && !is_same)
    }

    /// Into its file, or into service.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        if name == ANSWERS {
            let answers: Vec<Answer> = serde_json::from_slice(content)
                .map_err(|_| AcmeError::Garbage("these are no answers".to_owned()))?;
            return self.answers.replace(&answers);
        }
        let file = self.state.path(name);
        if self.reads(name).is_some_and(|own| *own == *content) {
            // A file that is written anew looks like a new certificate, and one that an operator wants renewed would be
            // taken for that.
            return Ok(());
        }
        if content.is_empty() {
            // Only an account ends: the authority does not know it any more.
            return files::put_aside(&file);
        }
        files::write(&file, content)
    }

    /// Whether the file is as it is in Redis, or is what Redis will get.
    fn has(&self, name: &str, content: &[u8]) -> bool {
        self.known().unpublished.contains(name)
            || self.reads(name).map_or(content.is_empty(), |own| *own == content)
    }

    fn reads(&self, name: &str) -> Option<Zeroizing<Vec<u8>>> {
        files::read(&self.state.path(name)).ok().flatten()
    }

    fn lacks(&self, name: &str) {
        let is_there = name != ANSWERS && self.state.path(name).exists();
        if is_there {
            self.known().unpublished.insert(name.to_owned());
        }
    }

    async fn refuse(&self, name: &str, problem: &str) {
        self.lacks(name);
        if self.known().damaged.insert(name.to_owned()) {
            tracing::error!(fleet = %self.records, record = name, "{problem}: refused, and what is here goes on serving");
            let _ = self.events.send(Event::RecordRefused).await;
        }
    }

    /// Says when the fleet cannot be asked, and when it can again.
    async fn note<T>(&self, asked: &Result<T, FleetError>) {
        let (is, was) = (asked.is_ok(), self.known().reachable.replace(asked.is_ok()));
        if was == Some(is) {
            return;
        }
        self.known().since = is.then(Instant::now);
        match asked {
            Ok(_) => tracing::info!(fleet = %self.records, "certificates are shared with the fleet"),
            Err(error) => {
                let orders =
                    if self.is_optional { "this gateway orders alone" } else { "none is ordered until then" };
                tracing::warn!(fleet = %self.records, %error, "the fleet cannot be asked: certificates that are here go on serving, and {orders}");
            }
        }
        let _ = self.events.send(Event::Fleet { reachable: is }).await;
    }

    fn keep(&self, known: &Known) -> Result<(), AcmeError> {
        known.versions.write(&self.state, self.records.namespace())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The file of a certificate in the state directory.
pub(crate) fn certificate_name(id: &str) -> String {
    format!("{CERTIFICATES}{id}")
}
