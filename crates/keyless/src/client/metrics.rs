//! Client metrics, through the `metrics` facade.
//!
//! | metric | labels |
//! |---|---|
//! | `quadrille_keyless_server_up` | `server` |
//! | `quadrille_keyless_operations_total` | `server`, `result`: `ok`, `refused`, `wrong` |
//! | `quadrille_keyless_operation_seconds` | `server`; from request to reply |
//! | `quadrille_keyless_failures_total` | `reason`: `unavailable`, `deadline`, `refused`, `full`, `closed` |
//! | `quadrille_keyless_violations_total` | `server`; connections closed because of protocol violations |
//! | `quadrille_keyless_hedges_total` | |

use super::Failure;
use metrics::{Counter, Histogram, counter, gauge, histogram};

/// Metric handles of one connection, looked up once.
pub(super) struct ServerMetrics {
    pub(super) ok: Counter,
    pub(super) refused: Counter,
    pub(super) seconds: Histogram,
}

impl ServerMetrics {
    pub(super) fn new(server: &str) -> Self {
        let operations = |result: &'static str| counter!("quadrille_keyless_operations_total", "server" => server.to_owned(), "result" => result);
        Self {
            ok: operations("ok"),
            refused: operations("refused"),
            seconds: histogram!("quadrille_keyless_operation_seconds", "server" => server.to_owned()),
        }
    }
}

pub(super) fn up(server: &str, up: bool) {
    gauge!("quadrille_keyless_server_up", "server" => server.to_owned()).set(if up { 1.0 } else { 0.0 });
}

pub(super) fn wrong(server: &str) {
    counter!("quadrille_keyless_operations_total", "server" => server.to_owned(), "result" => "wrong")
        .increment(1);
}

pub(super) fn violation(server: &str) {
    counter!("quadrille_keyless_violations_total", "server" => server.to_owned()).increment(1);
}

pub(super) fn failed(failure: Failure) {
    let reason = match failure {
        Failure::Unavailable => "unavailable",
        Failure::Deadline => "deadline",
        Failure::Refused(_) => "refused",
        Failure::Full => "full",
        Failure::Closed => "closed",
    };
    counter!("quadrille_keyless_failures_total", "reason" => reason).increment(1);
}

pub(super) fn hedged(count: u64) {
    counter!("quadrille_keyless_hedges_total").increment(count);
}
