//! State shared by the gateways of a fleet: the account, certificates with their keys, the progress of orders, and
//! challenge responses. All except the challenge responses are files of the state directory, with a sealed copy of
//! each in Redis.
//!
//! Every member takes records from Redis that are newer than its own; only the holder of the lease writes. A
//! certificate reaches all members within about a second, and a member without Redis keeps what it has.

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

/// Name of the record with the challenge responses, which has no file.
pub(crate) const ANSWERS: &str = "answers";

/// Folder of certificates in the state directory, and the prefix of their records' names.
const CERTIFICATES: &str = "certificates/";

/// Interval at which members check for new records.
const POLL: Duration = Duration::from_millis(500);
/// Interval at which members read all records, because a client outside the fleet may have modified them.
const INSPECTION: Duration = Duration::from_secs(10);
/// Time that a new member waits before it orders. By then all live members are registered; otherwise the authority
/// might send a validation request to one that the order did not wait for.
const ARRIVAL: Duration = Duration::from_secs(3);

/// One member of the fleet.
pub(crate) struct Fleet {
    records: Records,
    state: StateDirectory,
    answers: Arc<Answers>,
    events: mpsc::Sender<Event>,
    is_optional: bool,
    account: String,
    /// Identifiers of the plan's certificates.
    certificates: Vec<String>,
    /// Settings of on-demand certificates, if enabled.
    on_demand: Option<AcmeOnDemand>,
    known: Mutex<Known>,
    /// Serializes reading and applying records, and writing them.
    access: tokio::sync::Mutex<()>,
}

struct Known {
    versions: Versions,
    /// Version up to which all records are known.
    newest: Option<Version>,
    /// `None` before the first response.
    reachable: Option<bool>,
    /// Start of the current reachable period.
    since: Option<Instant>,
    /// Names of files that the fleet lacks, or has in an older version.
    unpublished: BTreeSet<String>,
    /// Names of records that have been reported as damaged.
    damaged: BTreeSet<String>,
}

impl Fleet {
    /// Returns `None` if the plan is for this gateway alone.
    pub(crate) fn of(
        plan: &Plan,
        state: &StateDirectory,
        answers: &Arc<Answers>,
        events: &mpsc::Sender<Event>,
    ) -> Option<Arc<Self>> {
        let records = plan.fleet.clone()?;
        let mut versions = Versions::read(state, records.namespace());
        // Challenge responses live only as long as the process.
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

    /// Returns whether to order alone while the fleet's Redis is unreachable.
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
                            // Announces at once to the other members that this member has it.
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

    /// Acquires the right to write. All existing records have been taken when it returns a lease.
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

    /// Writes a record and applies it here. A file that Redis cannot take now stays here and is written again later.
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

    /// Applies a record here; the fleet gets it later.
    pub(crate) fn store_here(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        if name != ANSWERS {
            self.known().unpublished.insert(name.to_owned());
        }
        self.put(name, content)
    }

    /// Returns the files that this member has and the others should get from it.
    pub(crate) fn unpublished(&self) -> Vec<String> {
        let known = self.known();
        if known.reachable == Some(true) { known.unpublished.iter().cloned().collect() } else { Vec::new() }
    }

    /// Writes the files that the fleet lacks.
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

    /// Waits at most `time`. Returns whether every live member has received the last written version.
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

    /// Takes every record that is newer than the local one.
    async fn take_all(&self, newest: Option<Version>) -> Result<(), FleetError> {
        let _access = self.access.lock().await;
        let mut names = self.names();
        let mut changed = false;
        loop {
            let records = self.records.read(&names).await?;
            for (name, record) in names.iter().zip(records) {
                changed |= self.take(name, record).await;
            }
            // Names granted on demand have records of their own.
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

    /// Applies a record. Returns whether it brought a new certificate.
    async fn take(&self, name: &str, record: Record) -> bool {
        let (version, content) = match record {
            Record::Sealed(version, content) => (version, content),
            Record::Absent => {
                self.lacks(name);
                return false;
            }
            Record::Damaged => {
                self.refuse(name, "does not belong to this fleet or has been modified").await;
                return false;
            }
        };
        let known = self.known().versions.get(name);
        if version < known {
            self.refuse(name, "is older than the version this gateway has received before").await;
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
            let garbage = || AcmeError::Garbage("the record contains no certificate".to_owned());
            let new = Issued::parse(content).ok_or_else(garbage)?;
            let own = Issued::read(&self.state.path(name));
            is_older = own.is_some_and(|own| own.validity.not_before > new.validity.not_before);
        }
        if name == self.account && !is_same && self.known().versions.get(name) == Version::default() {
            // The account that this gateway used before it joined: certificates ordered with it may have to be
            // revoked.
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

    /// Writes a record to its file, or applies it directly.
    fn put(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        if name == ANSWERS {
            let answers: Vec<Answer> = serde_json::from_slice(content)
                .map_err(|_| AcmeError::Garbage("the record contains no challenge responses".to_owned()))?;
            return self.answers.replace(&answers);
        }
        let file = self.state.path(name);
        if self.reads(name).is_some_and(|own| *own == *content) {
            // Writing the file again would make it look like a new certificate, which would also fulfil an operator's
            // pending renewal request.
            return Ok(());
        }
        if content.is_empty() {
            // Only an account can be removed: the authority no longer knows it.
            return files::put_aside(&file);
        }
        files::write(&file, content)
    }

    /// Returns whether the local content equals the record in Redis, or is about to be published.
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
            tracing::error!(fleet = %self.records, record = name, "{problem}: rejected; the local version stays in service");
            let _ = self.events.send(Event::RecordRefused).await;
        }
    }

    /// Logs when the fleet's Redis becomes unreachable, and when it is reachable again.
    async fn note<T>(&self, asked: &Result<T, FleetError>) {
        let (is, was) = (asked.is_ok(), self.known().reachable.replace(asked.is_ok()));
        if was == Some(is) {
            return;
        }
        self.known().since = is.then(Instant::now);
        match asked {
            Ok(_) => tracing::info!(fleet = %self.records, "certificates are shared with the fleet"),
            Err(error) => {
                let orders = if self.is_optional {
                    "this gateway orders alone"
                } else {
                    "no certificate is ordered until it is available"
                };
                tracing::warn!(fleet = %self.records, %error, "the fleet's Redis is unavailable: local certificates stay in service, and {orders}");
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

/// Returns the path of a certificate in the state directory.
pub(crate) fn certificate_name(id: &str) -> String {
    format!("{CERTIFICATES}{id}")
}
