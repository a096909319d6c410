//! Metrics of memory.

use crate::memory::Usage;
use metrics::{counter, gauge};

/// Counts a refusal because memory is short: `request`, `body` or `connections`.
pub(crate) fn refused(what: &'static str) {
    counter!("quadrille_memory_refused_total", "what" => what).increment(1);
}

/// Sets the gauges of memory.
pub(crate) fn update(usage: &Usage) {
    gauge!("quadrille_memory_limit_bytes").set(usage.limit.map_or(0.0, |limit| limit as f64));
    gauge!("quadrille_memory_used_bytes").set(usage.used as f64);
    gauge!("quadrille_memory_stage").set(f64::from(usage.stage as u8));
    for (purpose, bytes) in &usage.held {
        gauge!("quadrille_memory_held_bytes", "purpose" => *purpose).set(*bytes as f64);
    }
    counter!("quadrille_memory_requests_ended_total").absolute(usage.ended);
}
