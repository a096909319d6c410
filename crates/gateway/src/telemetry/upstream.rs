//! What is counted for each upstream.

use metrics::{Histogram, counter, histogram};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

/// How long servers take to begin their responses.
pub(super) const SECONDS: &str = "quadrille_upstream_seconds";

/// Upstreams whose times one process tells apart, all its configurations together: each has some twenty series, series are
/// never forgotten, and control planes send upstreams of ever new names.
const MOST: usize = 100;

/// As what the others count.
const OTHER: &str = "other";

static ADMITTED: Mutex<BTreeSet<Arc<str>>> = Mutex::new(BTreeSet::new());

/// Times of one upstream, which has series once it is used.
#[derive(Default)]
pub(crate) struct UpstreamTimes(OnceLock<Histogram>);

impl UpstreamTimes {
    /// A server of the upstream was asked so long ago, and the header of its response is there.
    pub(crate) fn record(&self, upstream: &str, took: Duration) {
        let new = || {
            let mut admitted = ADMITTED.lock().unwrap_or_else(PoisonError::into_inner);
            histogram!(SECONDS, "upstream" => admit(&mut admitted, upstream, MOST))
        };
        self.0.get_or_init(new).record(took);
    }
}

/// The name, unless it is a new one and there are too many.
fn admit(admitted: &mut BTreeSet<Arc<str>>, name: &str, most: usize) -> String {
    let known = admitted.contains(name) || admitted.len() < most && admitted.insert(name.into());
    if known { name.to_owned() } else { OTHER.to_owned() }
}

/// A request, or a connection in TCP mode, was beyond the upstream's limits.
pub(crate) fn overflow(upstream: &str) {
    counter!("quadrille_upstream_overflow_total", "upstream" => upstream.to_owned()).increment(1);
}

/// A name of servers was looked up.
pub(crate) fn lookup(succeeded: bool) {
    let result = if succeeded { "ok" } else { "failed" };
    counter!("quadrille_dns_lookups_total", "result" => result).increment(1);
}

/// A server was left out for what became of its requests.
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
