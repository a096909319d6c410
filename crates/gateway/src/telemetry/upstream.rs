//! Metrics of upstreams.

use metrics::{Histogram, counter, histogram};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// Histogram of the time to the response header.
pub(super) const SECONDS: &str = "quadrille_upstream_seconds";

/// Maximum number of upstreams with their own label in one process, over all its configurations: each has some twenty
/// time series, which are never dropped, and control planes may send ever new names.
const MOST: usize = 100;

/// Label of all other upstreams.
const OTHER: &str = "other";

static ADMITTED: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());

/// Response times of one upstream, which has time series once it is used.
#[derive(Default)]
pub(crate) struct UpstreamTimes(OnceLock<Histogram>);

impl UpstreamTimes {
    /// Records the time from a request to the response header.
    pub(crate) fn record(&self, upstream: &str, took: Duration) {
        let new = || {
            let mut admitted = ADMITTED.lock().unwrap_or_else(PoisonError::into_inner);
            histogram!(SECONDS, "upstream" => admit(&mut admitted, upstream, MOST))
        };
        self.0.get_or_init(new).record(took);
    }
}

/// Returns the name, unless it is new and the limit is reached.
fn admit(admitted: &mut BTreeSet<Arc<str>>, name: &str, most: usize) -> String {
    let known = admitted.contains(name) || admitted.len() < most && admitted.insert(name.into());
    if known { name.to_owned() } else { OTHER.to_owned() }
}

/// Counts a request, or a connection in TCP mode, that exceeds the upstream's limits.
pub(crate) fn overflow(upstream: &str) {
    counter!("quadrille_upstream_overflow_total", "upstream" => upstream.to_owned()).increment(1);
}

/// Counts a lookup of an endpoint's name.
pub(crate) fn lookup(succeeded: bool) {
    let result = if succeeded { "ok" } else { "failed" };
    counter!("quadrille_dns_lookups_total", "result" => result).increment(1);
}

/// Counts an ejection of an endpoint.
pub(crate) fn ejection(upstream: &str) {
    counter!("quadrille_upstream_ejections_total", "upstream" => upstream.to_owned()).increment(1);
}

#[cfg(test)]
mod tests {
    use super::{BTreeSet, admit};

    #[test]
    fn upstreams_beyond_the_most_count_together() {
        let mut admitted = BTreeSet::new();
        let labels = ["a", "b", "c", "a"].map(|name| admit(&mut admitted, name, 2));
        assert_eq!(labels, ["a", "b", "other", "a"]);
    }
}
