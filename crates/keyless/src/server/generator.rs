//! The thread that makes keys and removes them: one at a time, beside the event loops, because a key of RSA takes a
//! second and a file waits for its disk.

use super::{
    Shared,
    generated::{GenerationError, WantedKey},
};
use crate::wire::{ErrorCode, Ski};
use std::{
    collections::HashSet,
    fs, io,
    sync::{
        Arc, OnceLock, Weak,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    task::{Context, Poll},
    thread,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Requests of all clients that wait; more are refused.
const QUEUE: usize = 32;

/// What a client asks for.
pub(super) enum Task {
    Generate(WantedKey),
    Remove(Ski),
}

/// What became of a request: the key that was made, as a `SubjectPublicKeyInfo`, or nothing, of one that was removed.
pub(super) type KeyChange = (u32, Result<Vec<u8>, ErrorCode>);

struct Job {
    id: u32,
    task: Task,
    client: String,
    done: UnboundedSender<KeyChange>,
}

/// Starts when it is first needed.
#[derive(Default)]
pub(super) struct Generator(OnceLock<Option<SyncSender<Job>>>);

/// The requests of one connection.
pub(super) struct KeyChanges {
    waiting: HashSet<u32>,
    sender: UnboundedSender<KeyChange>,
    receiver: UnboundedReceiver<KeyChange>,
}

impl Default for KeyChanges {
    fn default() -> Self {
        let (sender, receiver) = unbounded_channel();
        Self { waiting: HashSet::new(), sender, receiver }
    }
}

impl KeyChanges {
    /// Has this done, unless too much waits.
    pub(super) fn submit(
        &mut self,
        shared: &Arc<Shared>,
        id: u32,
        client: &str,
        task: Task,
    ) -> Result<(), (ErrorCode, &'static str)> {
        let jobs = shared.generator.0.get_or_init(|| start(Arc::downgrade(shared)).ok()).as_ref();
        let job = Job { id, task, client: client.to_owned(), done: self.sender.clone() };
        let failed = (ErrorCode::Internal, "failed");
        jobs.ok_or(failed)?.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => (ErrorCode::Limited, "queue_full"),
            TrySendError::Disconnected(_) => failed,
        })?;
        self.waiting.insert(id);
        Ok(())
    }

    /// Whether this request waits.
    pub(super) fn has(&self, id: u32) -> bool {
        self.waiting.contains(&id)
    }

    /// What has been done; the task is woken when there is more.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<KeyChange> {
        // This end has a sender, so that it does not end.
        let Poll::Ready(Some(change)) = self.receiver.poll_recv(context) else { return Poll::Pending };
        self.waiting.remove(&change.0);
        Poll::Ready(change)
    }
}

fn start(shared: Weak<Shared>) -> io::Result<SyncSender<Job>> {
    let (sender, jobs) = sync_channel(QUEUE);
    thread::Builder::new().name("key-generator".to_owned()).spawn(move || work(&shared, &jobs))?;
    Ok(sender)
}

fn work(shared: &Weak<Shared>, jobs: &Receiver<Job>) {
    for Job { id, task, client, done } in jobs {
        let Some(shared) = shared.upgrade() else { return };
        let result = match task {
            // A client that has left has no use for it.
            Task::Generate(_) if done.is_closed() => continue,
            Task::Generate(wanted) => generate(&shared, wanted, &client),
            Task::Remove(ski) => remove(&shared, ski, &client),
        };
        let _ = done.send((id, result));
    }
}

fn generate(shared: &Shared, wanted: WantedKey, client: &str) -> Result<Vec<u8>, ErrorCode> {
    let reference = wanted.generated.reference.clone();
    let made = wanted.check(&shared.keys.load()).and_then(|()| wanted.make()).and_then(|new| {
        let public = new.key.pkey().public_key_to_der().map_err(|_| GenerationError::Failed)?;
        let name = new.name.clone();
        shared.change_keys(|keys| {
            new.check(keys)?;
            let (file, stored) = new.keep(keys.directory())?;
            shared.engine.prepare(&stored.key);
            Ok(keys.with(file, stored))
        })?;
        Ok((name, public))
    });
    match made {
        Ok((name, public)) => {
            tracing::info!(target: super::audit::TARGET, client, key = name, "a key has been generated");
            Ok(public)
        }
        Err(error) => {
            tracing::warn!(target: super::audit::TARGET, client, key = reference, %error, "no key generated");
            Err(ErrorCode::from(&error))
        }
    }
}

fn remove(shared: &Shared, ski: Ski, client: &str) -> Result<Vec<u8>, ErrorCode> {
    let removed = shared.change_keys(|keys| {
        let Some(file) = keys.file(&ski) else { return Err(None) };
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Some((file.to_owned(), error))),
            _ => Ok(keys.without(&ski)),
        }
    });
    match removed {
        Ok(()) => {
            tracing::info!(target: super::audit::TARGET, client, %ski, "a generated key has been removed");
            Ok(Vec::new())
        }
        Err(None) => Err(ErrorCode::KeyNotFound),
        Err(Some((file, error))) => {
            tracing::error!(file = %file.display(), %error, "a generated key cannot be removed");
            Err(ErrorCode::Internal)
        }
    }
}
