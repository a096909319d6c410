//! Server metrics, through the `metrics` facade. They are described in the gateway crate, whose process serves them.

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};
use std::sync::LazyLock;

/// Metric handles of one client, key and operation.
pub(super) struct KeyCounters {
    pub(super) ok: Counter,
    pub(super) failed: Counter,
    pub(super) withdrawn: Counter,
}

impl KeyCounters {
    pub(super) fn new(client: &str, key: &str, operation: &'static str) -> Self {
        let counted = |result: &'static str| {
            counter!("quadrille_keyserver_operations_total", "client" => client.to_owned(),
                "key" => key.to_owned(), "operation" => operation, "result" => result)
        };
        Self { ok: counted("ok"), failed: counted("failed"), withdrawn: counted("withdrawn") }
    }
}

pub(super) fn seconds() -> Histogram {
    histogram!("quadrille_keyserver_seconds")
}

pub(super) fn refused(client: &str, reason: &'static str) {
    counter!("quadrille_keyserver_refused_total", "client" => client.to_owned(), "reason" => reason)
        .increment(1);
}

pub(super) fn refused_connection(reason: &'static str) {
    counter!("quadrille_keyserver_refused_connections_total", "reason" => reason).increment(1);
}

pub(super) fn violation(client: &str) {
    counter!("quadrille_keyserver_violations_total", "client" => client.to_owned()).increment(1);
}

pub(super) fn keys(count: usize) {
    gauge!("quadrille_keyserver_keys").set(count as f64);
}

/// Counts one open connection while it exists.
pub(super) struct OpenConnection;

static OPEN: LazyLock<(Gauge, Counter)> = LazyLock::new(|| {
    (gauge!("quadrille_keyserver_connections"), counter!("quadrille_keyserver_connections_total"))
});

impl OpenConnection {
    pub(super) fn new() -> Self {
        OPEN.0.increment(1);
        OPEN.1.increment(1);
        Self
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        OPEN.0.decrement(1);
    }
}
