//! Periodic lookup of endpoint names.

use super::{
    balance::endpoint,
    cluster::{Upstream, Upstreams},
    names::{
        resolver,
        table::{self, Names},
    },
};
use quadrille_config::model::{self, Gateway, LookupFamily};
use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::task::AbortHandle;

/// Task that updates the endpoints of upstreams by the addresses of their names. It ends when this is dropped.
#[derive(Default)]
pub(crate) struct NameRefresh {
    names: Arc<Mutex<Names>>,
    task: Option<AbortHandle>,
}

/// An upstream with endpoints that have names.
struct Followed {
    upstream: Weak<Upstream>,
    servers: Vec<model::Server>,
    family: LookupFamily,
}

/// Minimum interval between rounds of lookups; names that are due soon are looked up together.
const PAUSE: Duration = Duration::from_millis(100);

impl NameRefresh {
    /// Returns the current state of all names.
    pub(crate) fn names(&self) -> Names {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces the names, and the upstreams that use them.
    pub(crate) fn follow(&mut self, names: Names, model: &Gateway, upstreams: &Upstreams) {
        if let Some(before) = self.task.take() {
            before.abort();
        }
        self.names = Arc::new(Mutex::new(names));
        let followed: Vec<_> = model
            .upstreams
            .iter()
            .filter(|(_, model)| model.servers.iter().any(table::is_name))
            .filter_map(|(name, model)| {
                let upstream = Arc::downgrade(upstreams.get(name)?);
                let family = model.dns_lookup_family;
                Some(Followed { upstream, servers: model.servers.clone(), family })
            })
            .collect();
        if !followed.is_empty() {
            self.task = Some(tokio::spawn(refresh(Arc::clone(&self.names), followed)).abort_handle());
        }
    }
}

impl Drop for NameRefresh {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

async fn refresh(names: Arc<Mutex<Names>>, followed: Vec<Followed>) {
    let lock = || names.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let due = lock().due();
        let Some(due) = due else { return };
        tokio::time::sleep_until(due.max(Instant::now() + PAUSE).into()).await;
        let (settings, questions) = {
            let names = lock();
            (names.settings.clone(), names.due_by(Instant::now()))
        };
        let outcomes = resolver::look_up(&settings, questions).await;
        let mut names = lock();
        names.note(outcomes);
        for Followed { upstream, servers, family } in &followed {
            let Some(upstream) = upstream.upgrade() else { continue };
            let endpoints = endpoint::resolve(servers, *family, &names);
            if !upstream.has_endpoints(&endpoints) {
                upstream.set_endpoints(endpoints);
            }
        }
    }
}
