//! Shutdown: clients are sent to other gateways, and requests in progress finish.

use super::Server;
use crate::{process::signals::Signals, traces};
use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

/// Time limit for sending the last spans to the collector.
const LAST_SPANS: Duration = Duration::from_secs(2);

impl Server {
    /// Handles SIGTERM: readiness is off, and connections are accepted until load balancers have reacted. Returns
    /// false if the lame-duck time is zero, or has already started.
    pub(super) fn waits_before_it_leaves(&mut self) -> bool {
        let lame_duck = self.configuration.load().lame_duck;
        if self.leaving.is_some() || lame_duck.is_zero() {
            return false;
        }
        tracing::info!(lame_duck = ?lame_duck, "shutting down: readiness off, still accepting connections");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.leaving = Instant::now().checked_add(lame_duck);
        self.leaving.is_some()
    }

    /// Stops accepting connections, and returns when requests in progress have finished or the timeout expires. A
    /// second signal ends the drain immediately.
    pub(super) async fn drain(mut self, signals: &mut Signals) {
        let limit = self.configuration.load().drain_timeout;
        tracing::info!(limit = ?limit, "draining");
        self.admin.ready.store(false, Ordering::Relaxed);
        self.shutdown.send_replace(true);
        for listening in &self.listening {
            listening.close();
        }
        // Rejects pending configurations, which will not be applied.
        self.updates = None;
        self.reloads.close();
        self.workers.clear();
        tokio::select! {
            _ = self.running.recv() => tracing::info!("drained"),
            () = tokio::time::sleep(limit) => tracing::warn!("drain timeout; closing remaining connections"),
            _ = signals.terminate.recv() => tracing::warn!("second signal; closing remaining connections"),
            _ = signals.interrupt.recv() => tracing::warn!("second signal; closing remaining connections"),
        }
        traces::finish(LAST_SPANS).await;
    }
}
