//! Key servers that compute what would wait too long here.

use super::spill::{Sent, Spill};
use quadrille_engine::Zeroizing;
use quadrille_keyless::client::Answer;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// What is known of the key servers of one certificate, by all event loops.
#[derive(Debug)]
pub(crate) struct KeyOverflow {
    spill: Mutex<Spill>,
    epoch: Instant,
}

/// An operation that goes to the key servers. Dropping it withdraws it.
pub(super) struct Spilled {
    overflow: Arc<KeyOverflow>,
    sent: Sent,
    over: bool,
}

impl KeyOverflow {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { spill: Mutex::default(), epoch: Instant::now() })
    }

    /// Whether an operation goes there that would wait for so long here.
    pub(super) fn send(self: &Arc<Self>, wait: Duration) -> Option<Spilled> {
        let sent = self.spill().send(wait, self.epoch.elapsed())?;
        Some(Spilled { overflow: Arc::clone(self), sent, over: false })
    }

    fn spill(&self) -> MutexGuard<'_, Spill> {
        self.spill.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Spilled {
    /// The key servers' result; none if there is none in time.
    pub(super) async fn result(self, answer: Answer) -> Option<Zeroizing<Vec<u8>>> {
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

    /// The key servers have not computed it.
    pub(super) fn failed(self) {
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
