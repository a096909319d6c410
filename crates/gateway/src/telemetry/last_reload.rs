//! Result of the last reload: after a failure, the active configuration differs from the files, which an operator
//! must see.

use arc_swap::ArcSwapOption;
use metrics::counter;
use quadrille_config::Diagnostic;
use serde_json::{Value, json};
use std::sync::Arc;

/// Maximum number of problems shown; the log contains all.
const TOLD: usize = 5;

struct LastReload {
    /// Unix time of the reload.
    at: f64,
    /// Problems; empty after a success.
    problems: Vec<String>,
}

static LAST: ArcSwapOption<LastReload> = ArcSwapOption::const_empty();

/// Records the result of a reload.
pub(crate) fn note(problems: &[Diagnostic]) {
    let result = if problems.is_empty() { "ok" } else { "failed" };
    counter!("quadrille_reloads_total", "result" => result).increment(1);
    let at = quadrille_unix_time::since_epoch().as_secs_f64();
    let problems = problems.iter().take(TOLD).map(ToString::to_string).collect();
    LAST.store(Some(Arc::new(LastReload { at, problems })));
}

/// Returns the result for `/status`; null before the first reload.
pub(super) fn shown() -> Value {
    LAST.load().as_ref().map_or(
        Value::Null,
        |last| json!({ "time": last.at, "ok": last.problems.is_empty(), "problems": last.problems }),
    )
}
