//! The benchmark's result as text and as JSON.

use quadrille_profile::load::{Live, Load, Outcome};
use serde_json::{Value, json};
use std::{fmt::Write, sync::atomic::Ordering, time::Duration};

const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p999", 99.9)];

/// Returns the progress line of a run.
pub(super) fn progress(load: &Load, live: &Live, elapsed: Duration) -> String {
    let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    let (ok, failed) = (read(&live.ok), read(&live.failed));
    let seconds = elapsed.as_secs_f64();
    let mut line = format!("{seconds:.0} s: {ok} connections, {:.0}/s", ok as f64 / seconds);
    if load.resumed > 0.0 {
        let _ = write!(line, ", {} resumed", read(&live.resumed));
    }
    if failed > 0 {
        let _ = write!(line, ", {failed} FAILED");
    }
    if load.count < u64::MAX {
        let _ = write!(line, " of {}", load.count);
    }
    line
}

/// Returns the result as text.
pub(super) fn text(outcome: &Outcome) -> String {
    let mut text = format!(
        "{:.0} handshakes/s: {} full, {} resumed, {} failed in {:.2} s\n",
        outcome.per_second(),
        outcome.full(),
        outcome.resumed,
        outcome.failed(),
        outcome.elapsed.as_secs_f64()
    );
    for (what, times) in [("handshake", &outcome.handshake_us), ("with requests", &outcome.exchange_us)] {
        let _ = write!(text, "{what:14}");
        for (name, percentile) in PERCENTILES {
            let _ = write!(text, " {name} {:>7} us", times.value_at_percentile(percentile));
        }
        let _ = writeln!(text, " max {:>7} us", times.max());
    }
    let _ = writeln!(text, "bytes          {} received, {} sent", outcome.received, outcome.sent);
    for (negotiated, count) in &outcome.negotiated {
        let _ = writeln!(text, "{count:>8} x {negotiated}");
    }
    for (failure, count) in &outcome.failures {
        let _ = writeln!(text, "{count:>8} failed in {}: {}", failure.stage, failure.reason);
    }
    text.trim_end().to_owned()
}

/// Returns the result as JSON.
pub(super) fn json(outcome: &Outcome) -> String {
    let latency = |times: &hdrhistogram::Histogram<u64>| -> Value {
        PERCENTILES
            .iter()
            .map(|(name, percentile)| ((*name).to_owned(), json!(times.value_at_percentile(*percentile))))
            .collect::<serde_json::Map<_, _>>()
            .into()
    };
    let failures: Vec<Value> = outcome
        .failures
        .iter()
        .map(|(failure, count)| {
            json!({"stage": failure.stage.to_string(), "reason": failure.reason, "count": count})
        })
        .collect();
    let negotiated: Vec<Value> = outcome
        .negotiated
        .iter()
        .map(|(agreed, count)| {
            json!({"version": agreed.version, "cipher": agreed.cipher, "group": agreed.group,
                "signature": agreed.signature, "count": count})
        })
        .collect();
    let all = json!({
        "handshakes_per_second": outcome.per_second(),
        "full": outcome.full(),
        "resumed": outcome.resumed,
        "failed": outcome.failed(),
        "offered": outcome.offered,
        "seconds": outcome.elapsed.as_secs_f64(),
        "latency_us": latency(&outcome.handshake_us),
        "exchange_latency_us": latency(&outcome.exchange_us),
        "bytes_received": outcome.received,
        "bytes_sent": outcome.sent,
        "failures": failures,
        "negotiated": negotiated,
    });
    format!("{all:#}")
}
