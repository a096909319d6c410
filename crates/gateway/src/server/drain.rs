//! The end of a process: clients are sent elsewhere, and what is under way finishes.

use super::Server;
use crate::{process::signals::Signals, traces};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// How long a process that ends waits for the collector of its last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

impl Server {
    /// On SIGTERM: whoever balances load hears that this process leaves, and until it has acted on that, connections are
    /// taken. False if nobody waits for that, or has waited already.
    pub(super) fn waits_before_it_leaves(&mut self) -> bool {
        let lame_duck = self.configuration.load().lame_duck;
        if self.leaving.is_some() || lame_duck.is_zero() {
            return false;
        }
        tracing::info!(lame_duck = ?lame_duck, "leaving: not ready, and still accepting connections");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.leaving = Instant::now().checked_add(lame_duck);
        self.leaving.is_some()
    }

    /// Stops accepting, lets what is under way finish, and returns when it has or when time is up. A second signal
    /// ends it at once.
    pub(super) async fn drain(mut self, signals: &mut Signals) {
        let limit = self.configuration.load().drain_timeout;
        tracing::info!(limit = ?limit, "draining");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.shutdown.send_replace(true);
        for listening in &self.listening {
            listening.close();
        }
        // Nobody waits for a configuration that will not come.
        self.updates = None;
        self.workers.clear();
        tokio::select! {
            _ = self.running.recv() => tracing::info!("drained"),
            () = tokio::time::sleep(limit) => tracing::warn!("time is up; closing the connections that are left"),
            _ = signals.terminate.recv() => tracing::warn!("second signal; closing the connections that are left"),
            _ = signals.interrupt.recv() => tracing::warn!("second signal; closing the connections that are left"),
        }
        traces::finish(LAST_SPANS).await;
    }
}
