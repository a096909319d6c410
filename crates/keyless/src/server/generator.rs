//! Thread that generates and removes keys: one at a time, beside the event loops, because an RSA key takes a second
//! and a file waits for its disk.

use super::{
    generated::{GenerationError, WantedKey},
    key_store::KeyStore,
};
use crate::wire::{ErrorCode, Ski};
use std::{
    collections::HashSet,
    fs, io,
    sync::{
        Arc, OnceLock,
        mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    },
    task::{Context, Poll},
    thread,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Maximum number of waiting requests of all clients; more are rejected.
const QUEUE: usize = 32;

/// Requested key change.
pub(super) enum Task {
    Generate(WantedKey),
    Remove(Ski),
}

/// Result of a request: the generated key, as a `SubjectPublicKeyInfo`, or an empty result for a removal.
pub(super) type KeyChange = (u32, Result<Vec<u8>, ErrorCode>);

struct Job {
    id: u32,
    task: Task,
    client: String,
    done: UnboundedSender<KeyChange>,
}

/// Thread handle; the thread starts on first use, and ends with it.
pub(super) struct Generator {
    keys: Arc<KeyStore>,
    jobs: OnceLock<Option<SyncSender<Job>>>,
}

impl Generator {
    /// Creates a generator that changes these keys.
    pub(super) fn new(keys: &Arc<KeyStore>) -> Self {
        Self { keys: Arc::clone(keys), jobs: OnceLock::new() }
    }

    fn submit(&self, job: Job) -> Result<(), (ErrorCode, &'static str)> {
        let failed = (ErrorCode::Internal, "failed");
        let jobs = self.jobs.get_or_init(|| start(Arc::clone(&self.keys)).ok()).as_ref();
        jobs.ok_or(failed)?.try_send(job).map_err(|error| match error {
            TrySendError::Full(_) => (ErrorCode::Limited, "queue_full"),
            TrySendError::Disconnected(_) => failed,
        })
    }
}

/// Requests of one connection.
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
    /// Submits a request, unless too many wait.
    pub(super) fn submit(
        &mut self,
        generator: &Generator,
        id: u32,
        client: &str,
        task: Task,
    ) -> Result<(), (ErrorCode, &'static str)> {
        generator.submit(Job { id, task, client: client.to_owned(), done: self.sender.clone() })?;
        self.waiting.insert(id);
        Ok(())
    }

    /// Returns whether this request is pending.
    pub(super) fn has(&self, id: u32) -> bool {
        self.waiting.contains(&id)
    }

    /// Returns a completed request; the task is woken for later ones.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<KeyChange> {
        // This end keeps a sender, so the channel does not close.
        let Poll::Ready(Some(change)) = self.receiver.poll_recv(context) else { return Poll::Pending };
        self.waiting.remove(&change.0);
        Poll::Ready(change)
    }
}

fn start(keys: Arc<KeyStore>) -> io::Result<SyncSender<Job>> {
    let (sender, jobs) = sync_channel(QUEUE);
    thread::Builder::new().name("key-generator".to_owned()).spawn(move || work(&keys, &jobs))?;
    Ok(sender)
}

fn work(keys: &KeyStore, jobs: &Receiver<Job>) {
    for Job { id, task, client, done } in jobs {
        let result = match task {
            // The client has disconnected and would not learn of the key.
            Task::Generate(_) if done.is_closed() => continue,
            Task::Generate(wanted) => generate(keys, wanted, &client),
            Task::Remove(ski) => remove(keys, ski, &client),
        };
        let _ = done.send((id, result));
    }
}

fn generate(keys: &KeyStore, wanted: WantedKey, client: &str) -> Result<Vec<u8>, ErrorCode> {
    let reference = wanted.generated.reference.clone();
    let made = wanted.check(&keys.load()).and_then(|()| wanted.make()).and_then(|new| {
        let public = new.key.pkey().public_key_to_der().map_err(|_| GenerationError::Failed)?;
        let name = new.name.clone();
        keys.change(|keys| {
            new.check(keys)?;
            let (file, stored) = new.keep(keys.directory())?;
            Ok(keys.with(file, stored))
        })?;
        Ok((name, public))
    });
    match made {
        Ok((name, public)) => {
            tracing::info!(target: super::audit::TARGET, client, key = name, "key generated");
            Ok(public)
        }
        Err(error) => {
            tracing::warn!(target: super::audit::TARGET, client, key = reference, %error, "no key generated");
            Err(ErrorCode::from(&error))
        }
    }
}

fn remove(keys: &KeyStore, ski: Ski, client: &str) -> Result<Vec<u8>, ErrorCode> {
    let removed = keys.change(|keys| {
        let Some(file) = keys.file(&ski) else { return Err(None) };
        match fs::remove_file(file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Some((file.to_owned(), error))),
            _ => Ok(keys.without(&ski)),
        }
    });
    match removed {
        Ok(()) => {
            tracing::info!(target: super::audit::TARGET, client, %ski, "generated key removed");
            Ok(Vec::new())
        }
        Err(None) => Err(ErrorCode::KeyNotFound),
        Err(Some((file, error))) => {
            tracing::error!(file = %file.display(), %error, "cannot remove a generated key");
            Err(ErrorCode::Internal)
        }
    }
}
