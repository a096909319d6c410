//! Overflow of private-key operations to key servers, for operations that would be queued too long here.

use super::overflow_policy::{Sent, Spill};
use quadrille_engine::Zeroizing;
use quadrille_keyless::client::Answer;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// State of the key servers of a certificate, shared by all event loops.
#[derive(Debug)]
pub(crate) struct KeyOverflow {
    spill: Mutex<Spill>,
    epoch: Instant,
}

/// An operation sent to the key servers. Dropping it cancels it.
pub(crate) struct Spilled {
    overflow: Arc<KeyOverflow>,
    sent: Sent,
    over: bool,
}

impl KeyOverflow {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { spill: Mutex::default(), epoch: Instant::now() })
    }

    /// Decides whether an operation with this queueing delay is sent to the key servers.
    pub(crate) fn send(self: &Arc<Self>, wait: Duration) -> Option<Spilled> {
        let sent = self.spill().send(wait, self.epoch.elapsed())?;
        Some(Spilled { overflow: Arc::clone(self), sent, over: false })
    }

    fn spill(&self) -> MutexGuard<'_, Spill> {
        self.spill.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spilled {
    /// Returns the key servers' result, or `None` if it does not arrive in time.
    pub(crate) async fn result(self, answer: Answer) -> Option<Zeroizing<Vec<u8>>> {
        match tokio::time::timeout(self.sent.patience, answer).await {
            Ok(Ok(bytes)) => {
                self.end("ok", Spill::answered);
                Some(bytes)
            }
            Ok(Err(_)) => {
                self.failed();
                None
            }
            Err(_) => {
                self.end("late", Spill::failed);
                None
            }
        }
    }

    /// Records that the key servers have not computed the operation.
    pub(crate) fn failed(self) {
        self.end("failed", Spill::failed);
    }

    fn end(mut self, result: &'static str, tell: fn(&mut Spill, &Sent, Duration)) {
        metrics::counter!("quadrille_keyless_spilled_total", "result" => result).increment(1);
        tell(&mut self.overflow.spill(), &self.sent, self.overflow.epoch.elapsed());
        self.over = true;
    }
}

impl Drop for Spilled {
    fn drop(&mut self) {
        if !self.over {
            self.overflow.spill().withdrawn();
        }
    }
}
