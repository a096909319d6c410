//! Counts of the control planes' responses and streams.

use metrics::{counter, describe_counter, describe_gauge, gauge};
use quadrille_xds::ResourceType;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts by resource type.
#[derive(Debug, Default)]
pub(crate) struct XdsStats([SubscriptionStats; ResourceType::ALL.len()]);

/// Counts of one resource type, over all control planes.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionStats {
    success: AtomicU64,
    rejected: AtomicU64,
    failure: AtomicU64,
    connected: AtomicU64,
}

impl XdsStats {
    /// Returns the counts of one resource type.
    pub(crate) fn subscription(&self, kind: ResourceType) -> &SubscriptionStats {
        &self.0[kind as usize]
    }

    fn describe() {
        describe_counter!(UPDATES, "Responses of control planes, by their result");
        describe_counter!(
            CLOSED,
            "Listeners and routes that were closed because their new access rules were rejected"
        );
        describe_gauge!(REFUSED, "Resources whose last version was rejected");
        describe_gauge!(CONNECTED, "Open streams to control planes");
        describe_counter!(FAILURES, "Streams to control planes that were lost or could not be opened");
    }

    pub(crate) fn count_response(&self, kind: ResourceType, accepted: bool) {
        let stats = self.subscription(kind);
        let (count, result) =
            if accepted { (&stats.success, "success") } else { (&stats.rejected, "rejected") };
        count.fetch_add(1, Ordering::Relaxed);
        Self::describe();
        counter!(UPDATES, "service" => kind.service(), "result" => result).increment(1);
        // The stream may have been opened before the gateway installed its recorder of metrics.
        self.show_connected(kind);
    }

    /// Counts an active resource that was closed because its new access rules were rejected.
    pub(crate) fn count_closed(&self, kind: ResourceType) {
        Self::describe();
        counter!(CLOSED, "service" => kind.service()).increment(1);
    }

    /// Sets the number of resources whose last version was rejected.
    #[allow(clippy::cast_precision_loss)] // a thousand at most
    pub(crate) fn show_refused(&self, kind: ResourceType, refused: usize) {
        gauge!(REFUSED, "service" => kind.service()).set(refused as f64);
    }

    /// Counts a change of a stream's connection for these resource types: `before` and `now` are whether it is up.
    pub(crate) fn count_connection(&self, kinds: &[ResourceType], before: bool, now: bool) {
        for &kind in kinds {
            let stats = self.subscription(kind);
            match (before, now) {
                (false, true) => _ = stats.connected.fetch_add(1, Ordering::Relaxed),
                (true, false) => _ = stats.connected.fetch_sub(1, Ordering::Relaxed),
                _ => {}
            }
            if !now {
                stats.failure.fetch_add(1, Ordering::Relaxed);
                counter!(FAILURES, "service" => kind.service()).increment(1);
            }
            self.show_connected(kind);
        }
    }

    /// Counts the end of an open stream that is no longer needed.
    pub(crate) fn count_end(&self, kinds: &[ResourceType]) {
        for &kind in kinds {
            self.subscription(kind).connected.fetch_sub(1, Ordering::Relaxed);
            self.show_connected(kind);
        }
    }

    #[allow(clippy::cast_precision_loss)] // a handful of streams
    fn show_connected(&self, kind: ResourceType) {
        gauge!(CONNECTED, "service" => kind.service()).set(self.subscription(kind).connected() as f64);
    }
}

impl SubscriptionStats {
    /// Returns the number of responses that were accepted completely: Envoy's `update_success`.
    pub(crate) fn success(&self) -> u64 {
        self.success.load(Ordering::Relaxed)
    }

    /// Returns the number of responses that were rejected, at least in part: Envoy's `update_rejected`.
    pub(crate) fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Returns the number of streams that were lost or could not be opened: Envoy's `update_failure`.
    pub(crate) fn failure(&self) -> u64 {
        self.failure.load(Ordering::Relaxed)
    }

    /// Returns the number of open streams: Envoy's `connected_state`.
    pub(crate) fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }
}

const CLOSED: &str = "quadrille_xds_closed_total";
const UPDATES: &str = "quadrille_xds_updates_total";
const REFUSED: &str = "quadrille_xds_refused";
const CONNECTED: &str = "quadrille_xds_connected";
const FAILURES: &str = "quadrille_xds_failures_total";
