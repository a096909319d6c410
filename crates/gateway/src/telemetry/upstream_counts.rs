//! Counts by upstream, for `/metrics` and `/status`.
//!
//! The counts are rendered for each scrape from the upstreams in service, as the recorder would keep those that a reload has
//! removed.

use super::{labels::labels, statistics::UpstreamStatistics};
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// Classes of statuses, by their index in [`UpstreamStatistics::responses`].
const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// A counter: its name, help, and value.
type Counter = (&'static str, &'static str, fn(&UpstreamStatistics) -> u64);

const COUNTERS: [Counter; 4] = [
    ("quadrille_upstream_retries_total", "Attempts after the first", |counts| counts.retries),
    (
        "quadrille_upstream_connect_failures_total",
        "Connections to endpoints that could not be established",
        |counts| counts.connect_failures,
    ),
    ("quadrille_upstream_timeouts_total", "Attempts that timed out", |counts| counts.timeouts),
    ("quadrille_upstream_no_server_total", "Requests without a healthy endpoint", |counts| counts.no_server),
];

/// Renders the counts in Prometheus's text format, of upstreams that have received requests.
pub(super) fn metrics<'a>(all: impl Iterator<Item = &'a UpstreamStatistics>) -> String {
    let used: Vec<_> = all.filter(|one| one.requests > 0).collect();
    let mut text = String::new();
    if used.is_empty() {
        return text;
    }
    let declare = |text: &mut String, name: &str, kind: &str, help: &str| {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    };
    let name = "quadrille_upstream_requests_total";
    declare(&mut text, name, "counter", "Requests by upstream and status class");
    for counts in &used {
        for (class, count) in CLASSES.iter().zip(counts.responses).filter(|(_, count)| *count > 0) {
            let labels = labels(&[("upstream", &counts.name), ("status", class)]);
            let _ = writeln!(text, "{name}{{{labels}}} {count}");
        }
    }
    let name = "quadrille_upstream_active_requests";
    declare(&mut text, name, "gauge", "Requests in progress, or open connections in tcp mode");
    for counts in &used {
        let _ = writeln!(text, "{name}{{{}}} {}", labels(&[("upstream", &counts.name)]), counts.active);
    }
    for (name, help, value) in COUNTERS {
        declare(&mut text, name, "counter", help);
        for counts in &used {
            let _ = writeln!(text, "{name}{{{}}} {}", labels(&[("upstream", &counts.name)]), value(counts));
        }
    }
    text
}

/// Returns the counts for `/status`.
pub(super) fn page(counts: &UpstreamStatistics) -> Value {
    let responses: Map<_, _> = CLASSES
        .iter()
        .zip(counts.responses)
        .map(|(class, count)| ((*class).to_owned(), count.into()))
        .collect();
    json!({
        "requests": counts.requests,
        "active": counts.active,
        "responses": responses,
        "retries": counts.retries,
        "connect_failures": counts.connect_failures,
        "timeouts": counts.timeouts,
        "no_server": counts.no_server,
        "overflow": counts.overflow,
        "ejections": counts.ejections,
    })
}
