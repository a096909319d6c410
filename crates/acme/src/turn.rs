//! The right to order: one process of a state directory has it, and one gateway of a fleet.

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

/// What whoever has the turn may do. Others can take it once this has ended, or in [`TERM`] if it cannot be given back.
/// Whoever drops it, in the midst of an order too, takes back what was published.
pub(crate) struct Turn {
    state: StateDirectory,
    answers: Arc<Answers>,
    fleet: Option<Arc<Fleet>>,
    /// Without one, this gateway orders for itself alone.
    lease: Option<Lease>,
    /// Whether answers have been published, and not taken back.
    answering: AtomicBool,
    _lock: Lock,
}

/// In JSON.
const NO_ANSWERS: &[u8] = b"[]";
/// A lease ends when it has not been renewed for this long.
const TERM: Duration = Duration::from_secs(20);
const RENEWAL: Duration = Duration::from_secs(4);
/// For all members of the fleet to learn what they may be asked.
const SPREAD: Duration = Duration::from_secs(10);

impl Turn {
    /// `None` while somebody else has it, or if it cannot be asked who has it.
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

    /// Does something for which the turn is needed all the time.
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

    /// Keeps a file of the state directory, and has the fleet keep it.
    pub(crate) async fn store(&self, name: &str, content: &[u8]) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.store(lease, name, content).await,
            (Some(fleet), None) => fleet.store_here(name, content),
            (None, _) => files::write(&self.state.path(name), content),
        }
    }

    /// Puts an account aside that the authority does not know any more.
    pub(crate) async fn forget(&self, name: &str) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.store(lease, name, b"").await,
            _ => files::put_aside(&self.state.path(name)),
        }
    }

    /// Gives the fleet what this gateway has alone.
    pub(crate) async fn publish_files(&self, names: &[String]) -> Result<(), AcmeError> {
        match (&self.fleet, &self.lease) {
            (Some(fleet), Some(lease)) => fleet.publish_files(lease, names).await,
            _ => Ok(()),
        }
    }

    /// From now on these answers are given, and no others. Resolves once everybody who may be asked knows them.
    pub(crate) async fn publish(&self, answers: &[Answer]) -> Result<(), AcmeError> {
        // If it is interrupted, they may be there or not.
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
                "not all gateways of the fleet know the challenge's answer yet; the authority may find a wrong one"
            );
        }
        Ok(())
    }

    /// Lets others have it at once.
    pub(crate) async fn end(mut self) {
        if let Some(telling) = self.give_back() {
            telling.await;
        }
    }

    /// Takes back answers that are still given, here; what has to be told the fleet.
    fn give_back(&mut self) -> Option<impl Future<Output = ()> + use<>> {
        let answering = std::mem::take(self.answering.get_mut());
        let (Some(fleet), Some(lease)) = (self.fleet.take(), self.lease.take()) else {
            if answering {
                // Only making an answer can fail, and there is none.
                let _ = self.answers.replace(&[]);
            }
            return None;
        };
        Some(async move {
            if answering && let Err(error) = fleet.store(&lease, ANSWERS, NO_ANSWERS).await {
                tracing::debug!(%error, "the answers of an interrupted order could not be removed; they stay until the next one");
            }
            fleet.release(lease).await;
        })
    }
}

/// An order may be interrupted anywhere, by a reload above all.
impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(telling) = self.give_back()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(telling);
        }
    }
}

/// Keeps the lease until it is lost.
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
        let turn = Turn::take(&state, &answers, None).await.expect("the lock").expect("the turn");
        turn.publish(&[answer]).await.expect("publishing");
        assert!(answers.http("token").is_some());
        drop(turn);
        assert!(answers.http("token").is_none());
        assert!(Turn::take(&state, &answers, None).await.expect("the lock").is_some(), "others have it");
    }
}
