//! What became of the last reload: who looks at a process has to see that it serves something else than its files say.

use arc_swap::ArcSwapOption;
use metrics::counter;
use quadrille_config::Diagnostic;
use serde_json::{Value, json};
use std::sync::Arc;

/// Problems that are told; the log has all.
const TOLD: usize = 5;

struct LastReload {
    /// Unix time.
    at: f64,
    /// None if it succeeded.
    problems: Vec<String>,
}

static LAST: ArcSwapOption<LastReload> = ArcSwapOption::const_empty();

/// A reload has ended, with these problems.
pub(crate) fn note(problems: &[Diagnostic]) {
    let result = if problems.is_empty() { "ok" } else { "failed" };
    counter!("quadrille_reloads_total", "result" => result).increment(1);
    let at = quadrille_resumption::unix_now().as_secs_f64();
    let problems = problems.iter().take(TOLD).map(ToString::to_string).collect();
    LAST.store(Some(Arc::new(LastReload { at, problems })));
}

/// For the page `/status`; null before the first reload.
pub(super) fn shown() -> Value {
    LAST.load().as_ref().map_or(
        Value::Null,
        |last| json!({ "time": last.at, "ok": last.problems.is_empty(), "problems": last.problems }),
    )
}
