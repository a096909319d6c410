//! What has come of the control planes, for statistics.

use metrics::{counter, describe_counter, describe_gauge, gauge};
use quadrille_xds::Kind;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of each kind.
#[derive(Debug, Default)]
pub struct Figures([KindFigures; Kind::ALL.len()]);

/// Of one kind, over all control planes.
#[derive(Debug, Default)]
pub struct KindFigures {
    success: AtomicU64,
    rejected: AtomicU64,
    failure: AtomicU64,
    connected: AtomicU64,
}

impl Figures {
    /// Of one kind.
    pub fn of(&self, kind: Kind) -> &KindFigures {
        &self.0[kind as usize]
    }

    fn describe() {
        describe_counter!(UPDATES, "Responses of control planes, by what came of them");
        describe_gauge!(CONNECTED, "Streams to control planes that are up");
        describe_counter!(FAILURES, "Streams to control planes that were lost or not made");
    }

    pub(crate) fn answered(&self, kind: Kind, accepted: bool) {
        let figures = self.of(kind);
        let (figure, result) =
            if accepted { (&figures.success, "success") } else { (&figures.rejected, "rejected") };
        figure.fetch_add(1, Ordering::Relaxed);
        Self::describe();
        counter!(UPDATES, "service" => kind.service(), "result" => result).increment(1);
        // The stream may have been made before the gateway had begun to count.
        self.show_connected(kind);
    }

    /// A stream for these kinds is up; `was` says whether it was so before.
    pub(crate) fn connected(&self, kinds: &[Kind], was: bool, is: bool) {
        for &kind in kinds {
            let figures = self.of(kind);
            match (was, is) {
                (false, true) => _ = figures.connected.fetch_add(1, Ordering::Relaxed),
                (true, false) => _ = figures.connected.fetch_sub(1, Ordering::Relaxed),
                _ => {}
            }
            if !is {
                figures.failure.fetch_add(1, Ordering::Relaxed);
                counter!(FAILURES, "service" => kind.service()).increment(1);
            }
            self.show_connected(kind);
        }
    }

    #[allow(clippy::cast_precision_loss)] // a handful of streams
    fn show_connected(&self, kind: Kind) {
        gauge!(CONNECTED, "service" => kind.service()).set(self.of(kind).connected() as f64);
    }
}

impl KindFigures {
    /// Responses that were accepted whole: Envoy's `update_success`.
    pub fn success(&self) -> u64 {
        self.success.load(Ordering::Relaxed)
    }

    /// Responses of which something was refused: Envoy's `update_rejected`.
    pub fn rejected(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    /// Streams that were lost or not made: Envoy's `update_failure`.
    pub fn failure(&self) -> u64 {
        self.failure.load(Ordering::Relaxed)
    }

    /// Streams that are up: Envoy's `connected_state`.
    pub fn connected(&self) -> u64 {
        self.connected.load(Ordering::Relaxed)
    }
}

const UPDATES: &str = "quadrille_xds_updates_total";
const CONNECTED: &str = "quadrille_xds_connected";
const FAILURES: &str = "quadrille_xds_failures_total";
