//! What the server counts, through the `metrics` facade.
//!
//! | metric | labels |
//! |---|---|
//! | `quadrille_keyserver_operations_total` | `client`, `key`, `operation` (`sign`, `decrypt`), `result` (`ok`, `failed`, `withdrawn`) |
//! | `quadrille_keyserver_refused_total` | `client`, `reason` (`no_key`, `denied`, `rate`, `opcode`, `input`, `queue_full`) |
//! | `quadrille_keyserver_seconds` | from taking an operation up to its reply |
//! | `quadrille_keyserver_connections`, `quadrille_keyserver_connections_total` | |
//! | `quadrille_keyserver_refused_connections_total` | `reason` (`handshake`, `timeout`, `policy`, `too_many`) |
//! | `quadrille_keyserver_violations_total` | `client` |
//! | `quadrille_keyserver_keys` | |

use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram, gauge,
    histogram,
};
use std::sync::LazyLock;

/// Tells the recorder what each metric means.
pub fn describe() {
    describe_counter!("quadrille_keyserver_operations_total", "Private-key operations, by client and key");
    describe_counter!("quadrille_keyserver_refused_total", "Operations that were refused, by client");
    describe_histogram!("quadrille_keyserver_seconds", "From taking an operation up to its reply");
    describe_gauge!("quadrille_keyserver_connections", "Open connections of clients");
    describe_counter!("quadrille_keyserver_connections_total", "Accepted connections of clients");
    describe_counter!("quadrille_keyserver_refused_connections_total", "Connections that were refused");
    describe_counter!(
        "quadrille_keyserver_violations_total",
        "Connections closed because of what came on them"
    );
    describe_gauge!("quadrille_keyserver_keys", "Keys that are served");
}

/// The handles of one client, key and operation.
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

/// Counts one open connection for as long as it lives.
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
