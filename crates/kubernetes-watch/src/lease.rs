//! A Lease, whose holder writes to the objects.

use crate::settings::NamespacedName;
use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use std::time::{Duration, Instant};

/// A Lease that this process holds, or waits for.
pub(crate) struct HeldLease {
    api: Api<Lease>,
    name: String,
    identity: String,
    /// The last version that was seen, with the time at which it appeared: clocks of machines may differ.
    seen: Option<(String, Instant)>,
    renewed: Option<Instant>,
}

impl HeldLease {
    pub(crate) fn new(client: Client, name: NamespacedName, identity: String) -> Self {
        let api = Api::namespaced(client, &name.namespace);
        Self { api, name: name.name, identity, seen: None, renewed: None }
    }

    /// Returns whether this process holds the Lease.
    pub(crate) fn is_held(&self, now: Instant) -> bool {
        self.renewed.is_some_and(|renewed| now.saturating_duration_since(renewed) < RENEWAL_DEADLINE)
    }

    /// Renews the Lease, or takes it if it is free.
    ///
    /// # Errors
    /// If the API server does not allow it, or cannot be reached.
    pub(crate) async fn renew(&mut self) -> Result<(), kube::Error> {
        let begin = Instant::now();
        let mut lease = match self.api.get_opt(&self.name).await? {
            Some(lease) => lease,
            None => {
                let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
                let new = Lease { metadata, spec: Some(self.taken(None)) };
                let created = self.api.create(&PostParams::default(), &new).await;
                return self.outcome(created, begin);
            }
        };
        if !self.may_take(&lease, begin) {
            self.renewed = None;
            return Ok(());
        }
        lease.spec = Some(self.taken(lease.spec.take()));
        // The version in it makes this fail if another process was faster.
        let replaced = self.api.replace(&self.name, &PostParams::default(), &lease).await;
        self.outcome(replaced, begin)
    }

    fn outcome(&mut self, written: Result<Lease, kube::Error>, begin: Instant) -> Result<(), kube::Error> {
        match written {
            Ok(_) => self.renewed = Some(begin),
            Err(kube::Error::Api(status)) if status.code == 409 => self.renewed = None,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn may_take(&mut self, lease: &Lease, now: Instant) -> bool {
        let version = lease.metadata.resource_version.clone().unwrap_or_default();
        if self.seen.as_ref().is_none_or(|(seen, _)| *seen != version) {
            self.seen = Some((version, now));
        }
        let spec = lease.spec.as_ref();
        let holder = spec.and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default();
        if holder.is_empty() || holder == self.identity {
            return true;
        }
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds).unwrap_or(DURATION);
        let duration = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        self.seen.as_ref().is_some_and(|(_, since)| now.saturating_duration_since(*since) > duration)
    }

    fn taken(&self, before: Option<LeaseSpec>) -> LeaseSpec {
        let now = Some(MicroTime(Timestamp::now()));
        let before = before.unwrap_or_default();
        let is_own = before.holder_identity.as_ref() == Some(&self.identity);
        let transitions = before.lease_transitions.unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(DURATION),
            acquire_time: if is_own { before.acquire_time } else { now.clone() },
            renew_time: now,
            lease_transitions: Some(if is_own { transitions } else { transitions + 1 }),
            ..LeaseSpec::default()
        }
    }
}

/// Seconds after which another process may take a Lease that was not renewed.
const DURATION: i32 = 15;
/// Time after which the holder stops to write: before another one begins.
const RENEWAL_DEADLINE: Duration = Duration::from_secs(10);
