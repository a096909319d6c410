//! Progress of the watch, from the first lists to the newest configuration, for the admin pages and the metrics.

use crate::watches::Watches;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

/// Progress of a watch. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    state: Arc<Mutex<State>>,
    pub(crate) watches: Watches,
}

#[derive(Debug, Default)]
struct State {
    /// Objects whose first list is not complete.
    awaited: Vec<String>,
    /// Time at which the last configuration was put into service, and whether there was one.
    in_service: Option<SystemTime>,
    counts: Counts,
    /// Reason for which the newest objects are not in service.
    problem: Option<String>,
    is_leader: bool,
}

/// Numbers of objects and settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) objects: Vec<(&'static str, usize)>,
    pub(crate) served: usize,
    pub(crate) refused: usize,
}

impl Progress {
    /// Notes what is awaited before the first configuration.
    pub(crate) fn awaits(&self, awaited: Vec<String>) {
        self.lock().awaited = awaited;
    }

    /// Notes that the newest objects are in service.
    pub(crate) fn applied(&self, counts: Counts) {
        let mut state = self.lock();
        state.in_service = Some(SystemTime::now());
        state.counts = counts;
        state.problem = None;
        drop(state);
        counter!(UPDATES, "result" => "ok").increment(1);
    }

    /// Notes that the newest objects cannot be put into service. Returns whether the reason is a new one.
    pub(crate) fn failed(&self, problem: String) -> bool {
        let mut state = self.lock();
        let is_new = state.problem.as_ref() != Some(&problem);
        state.problem = Some(problem);
        drop(state);
        counter!(UPDATES, "result" => "failed").increment(1);
        is_new
    }

    pub(crate) fn set_leader(&self, is_leader: bool) {
        self.lock().is_leader = is_leader;
    }

    /// Returns the age of the view: the time for which a watch has been interrupted.
    pub(crate) fn age(&self) -> Duration {
        self.watches.age(Instant::now())
    }

    /// Returns what is missing before the first configuration; `None` once one is in service.
    pub(crate) fn missing(&self) -> Option<String> {
        let state = self.lock();
        if state.in_service.is_some() {
            return None;
        }
        Some(match (&state.problem, state.awaited.as_slice()) {
            (Some(problem), _) => format!("not in service: {problem}"),
            (None, []) => "waiting for the first list of objects".to_owned(),
            (None, awaited) => format!("waiting for the first list of {}", awaited.join(", ")),
        })
    }

    /// Returns the part of `/status`.
    pub(crate) fn status(&self) -> Value {
        let age = self.age().as_secs_f64();
        let state = self.lock();
        let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let objects: serde_json::Map<String, Value> =
            state.counts.objects.iter().map(|(kind, count)| ((*kind).to_owned(), (*count).into())).collect();
        json!({
            "ready": state.in_service.is_some(),
            "view_age_seconds": age,
            "awaited": state.awaited,
            "in_service_since": state.in_service.map(seconds),
            "problem": state.problem,
            "objects": objects,
            "ingresses_served": state.counts.served,
            "settings_refused": state.counts.refused,
            "leader": state.is_leader,
        })
    }

    /// Sets the gauges.
    #[allow(clippy::cast_precision_loss)] // far below 2^52
    pub(crate) fn show(&self) {
        describe();
        gauge!(AGE).set(self.age().as_secs_f64());
        let state = self.lock();
        gauge!(READY).set(f64::from(u8::from(state.in_service.is_some())));
        gauge!(LEADER).set(f64::from(u8::from(state.is_leader)));
        gauge!(REFUSED).set(state.counts.refused as f64);
        gauge!(SERVED).set(state.counts.served as f64);
        for (kind, count) in &state.counts.objects {
            gauge!(OBJECTS, "kind" => *kind).set(*count as f64);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn describe() {
    describe_gauge!(AGE, "Seconds since all watches were open: the age of the view of the cluster");
    describe_gauge!(READY, "1 once a configuration of the cluster is in service");
    describe_gauge!(LEADER, "1 while this process holds the Lease");
    describe_gauge!(OBJECTS, "Objects of the cluster that are known");
    describe_gauge!(SERVED, "Ingress objects in service");
    describe_gauge!(REFUSED, "Settings of objects that do not work");
    describe_counter!(UPDATES, "Configurations made of the cluster's objects, by their result");
}

const AGE: &str = "quadrille_kubernetes_view_age_seconds";
const READY: &str = "quadrille_kubernetes_ready";
const LEADER: &str = "quadrille_kubernetes_leader";
const OBJECTS: &str = "quadrille_kubernetes_objects";
const SERVED: &str = "quadrille_kubernetes_ingresses";
const REFUSED: &str = "quadrille_kubernetes_settings_refused";
const UPDATES: &str = "quadrille_kubernetes_updates_total";
