//! The right to order, held by one process of a state directory and one gateway of a fleet.

use crate::{
    AcmeError, Answers, StateDirectory,
    answers::Answer,
    files::{self, Lock},
    fleet::{ANSWERS, Fleet},
};
use quadrille_resumption::Lease;
use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::runtime::Handle;

/// Operations of the holder of the lock. Others can take it once this ends, or within [`TERM`] if it cannot be
/// released. Dropping it, also during an order, withdraws what was published.
pub(crate) struct OrderLock {
    state: StateDirectory,
    answers: Arc<Answers>,
    fleet: Option<Arc<Fleet>>,
    /// Lease of the fleet; without one, this gateway orders for itself only.
    lease: Option<Lease>,
    /// Whether challenge responses are published.
    answering: AtomicBool,
    _lock: Lock,
}

/// JSON of an empty list.
const NO_ANSWERS: &[u8] = b"[]";
/// Time after which a lease expires if it is not renewed.
const TERM: Duration = Duration::from_secs(20);
const RENEWAL: Duration = Duration::from_secs(4);
/// Time for all members of the fleet to receive the challenge responses.
const SPREAD: Duration = Duration::from_secs(10);

impl OrderLock {
    /// Takes the lock; `None` while another member holds it, or if the fleet's Redis is unreachable.
    pub(crate) async fn take(
        state: &StateDirectory,
        answers: &Arc<Answers>,
        fleet: Option<&Arc<Fleet>>,
    ) -> Result<Option<Self>, AcmeError> {
        let Some(lock) = state.lock()? else { return Ok(None) };
        let lease = match fleet {
            None => None,
            Some(fleet) => match fleet.lease(TERM).await {
                Ok(Some(lease)) => Some(lease),
                Err(_) if fleet.is_optional() => None,
                Ok(None) | Err(_) => return Ok(None),
            },
        };
        let (state, answers, fleet) = (state.clone(), Arc::clone(answers), fleet.cloned());
        let answering = AtomicBool::new(false);
        Ok(Some(Self { state, answers, fleet, lease, answering, _lock: lock }))
    }

    /// Runs an operation that needs the lock throughout.
    pub(crate) async fn hold<T>(
        &self,
        work: impl Future<Output = Result<T, AcmeError>>,
    ) -> Result<T, AcmeError> {
        let (Some(fleet), Some(lease)) = (&self.fleet, &self.lease) else { return work.await };
        tokio::select! {
            done = work => done,
            () = lost(fleet, lease) => Err(AcmeError::Lease),
        }
    }

    /// Stores a file in the state directory and in the fleet.
    pub(crate) async fn store(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.store(lease, name, content).await,
            (Some(fleet), None) => fleet.store_here(name, content),
            (None, _) => files::write(&self.state.path(name), content),
        }
    }

    /// Moves an account that the authority no longer knows out of the way.
    pub(crate) async fn forget(&self, name: &str) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.store(lease, name, b"").await,
            _ => files::put_aside(&self.state.path(name)),
        }
    }

    /// Publishes files to the fleet that only this gateway has.
    pub(crate) async fn publish_files(&self, names: &[String]) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.publish_files(lease, names).await,
            _ => Ok(()),
        }
    }

    /// Replaces the challenge responses. Resolves once every gateway that may receive a validation request has them.
    pub(crate) async fn publish(&self, answers: &[Answer]) -> Result<(), AcmeError> {
        // If it is interrupted, the responses may or may not be published.
        self.answering.store(true, Relaxed);
        self.replace(answers).await?;
        self.answering.store(!answers.is_empty(), Relaxed);
        Ok(())
    }

    async fn replace(&self, answers: &[Answer]) -> Result<(), AcmeError> {
        let (Some(fleet), Some(lease)) = (&self.fleet, &self.lease) else {
            return self.answers.replace(answers);
        };
        let json = serde_json::to_vec(answers).map_err(|error| AcmeError::File(error.to_string()))?;
        fleet.store(lease, ANSWERS, &json).await?;
        if !answers.is_empty() && !fleet.all_know(SPREAD).await {
            tracing::warn!(
                "not all gateways of the fleet have the challenge response yet; validation may fail"
            );
        }
        Ok(())
    }

    /// Releases the lock at once.
    pub(crate) async fn end(mut self) {
        if let Some(telling) = self.give_back() {
            telling.await;
        }
    }

    /// Withdraws published responses here, and returns the update for the fleet.
    fn give_back(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let answering = std::mem::take(self.answering.get_mut());
        let (Some(fleet), Some(lease)) = (self.fleet.take(), self.lease.take()) else {
            if answering {
                // Only adding a response can fail, and none is added.
                let _ = self.answers.replace(&[]);
            }
            return None;
        };
        Some(async move {
            if answering && let Err(error) = fleet.store(&lease, ANSWERS, NO_ANSWERS).await {
                tracing::debug!(%error, "the challenge responses of an interrupted order could not be removed; they stay until the next order");
            }
            fleet.release(lease).await;
        })
    }
}

/// An order may be interrupted at any point, most often by a reload.
impl Drop for OrderLock {
    fn drop(&mut self) {
        if let Some(telling) = self.give_back()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(telling);
        }
    }
}

/// Renews the lease; returns when it is lost.
async fn lost(fleet: &Fleet, lease: &Lease) {
    let mut confirmed = Instant::now();
    loop {
        tokio::time::sleep(RENEWAL).await;
        let asked = Instant::now();
        match fleet.renew(lease, TERM).await {
            Ok(true) => confirmed = asked,
            Ok(false) => return,
            Err(_) if confirmed.elapsed() > TERM => return,
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_order_that_is_interrupted_leaves_no_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = StateDirectory::open(folder.path()).expect("a state directory");
        let answers = Arc::new(Answers::default());
        let answer =
            Answer::Http { token: "token".to_owned(), key_authorization: "token.thumbprint".to_owned() };
        let lock = OrderLock::take(&state, &answers, None).await.expect("the lock").expect("the order lock");
        lock.publish(&[answer]).await.expect("publishing");
        assert!(answers.http("token").is_some());
        drop(lock);
        assert!(answers.http("token").is_none());
        assert!(OrderLock::take(&state, &answers, None).await.expect("the lock").is_some(), "it is free");
    }
}
