//! Names of servers are looked up again while they serve.

use super::{
    cluster::{Upstream, Upstreams},
    endpoint,
    names::{self, Names},
    resolver,
};
use quadrille_config::model::{self, Gateway};
use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};
use tokio::task::AbortHandle;

/// Keeps the servers of upstreams where their names lead. It ends with this value.
#[derive(Default)]
pub(crate) struct NameRefresh {
    names: Arc<Mutex<Names>>,
    task: Option<AbortHandle>,
}

/// An upstream with servers that have names.
struct Followed {
    upstream: Weak<Upstream>,
    servers: Vec<model::Server>,
}

/// Between two rounds at least, whatever goes wrong; names that are due soon are looked up together.
const PAUSE: Duration = Duration::from_millis(100);

impl NameRefresh {
    /// What is known of all names at this moment.
    pub(crate) fn names(&self) -> Names {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these names, of the upstreams of this configuration.
    pub(crate) fn follow(&mut self, names: Names, model: &Gateway, upstreams: &Upstreams) {
        if let Some(before) = self.task.take() {
            before.abort();
        }
        self.names = Arc::new(Mutex::new(names));
        let followed: Vec<_> = model
            .upstreams
            .iter()
            .filter(|(_, model)| model.servers.iter().any(names::is_name))
            .filter_map(|(name, model)| {
                let upstream = Arc::downgrade(upstreams.get(name)?);
                Some(Followed { upstream, servers: model.servers.clone() })
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
        let (settings, hosts) = {
            let names = lock();
            (names.settings.clone(), names.due_by(Instant::now()))
        };
        let outcomes = resolver::look_up(&settings, hosts).await;
        let mut names = lock();
        names.note(outcomes);
        for Followed { upstream, servers } in &followed {
            let Some(upstream) = upstream.upgrade() else { continue };
            let endpoints = endpoint::resolve(servers, &names);
            if !upstream.has_endpoints(&endpoints) {
                upstream.set_endpoints(endpoints);
            }
        }
    }
}
