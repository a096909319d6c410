//! Metrics of one moment, and rates between two.

use std::{collections::HashMap, time::Instant};

/// All series of a scrape: name and labels as written, and value.
pub(super) struct Sample {
    at: Instant,
    series: HashMap<String, f64>,
}

/// The time between two scrapes.
pub(super) struct Span<'a> {
    before: &'a Sample,
    after: &'a Sample,
    seconds: f64,
}

impl Sample {
    /// Reads Prometheus's text format.
    pub(super) fn read(text: &str, at: Instant) -> Self {
        let line = |line: &str| {
            let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
            Some((series.to_owned(), value.parse().ok()?))
        };
        Self { at, series: text.lines().filter_map(line).collect() }
    }

    /// Returns the sum of a metric's series that have these labels.
    fn sum(&self, name: &str, labels: &[&str]) -> f64 {
        let wanted = |series: &str| {
            let (known, rest) = series.split_once('{').unwrap_or((series, ""));
            known == name && labels.iter().all(|label| rest.contains(label))
        };
        self.series.iter().filter(|(series, _)| wanted(series)).map(|(_, value)| value).sum()
    }
}

impl<'a> Span<'a> {
    pub(super) fn between(before: &'a Sample, after: &'a Sample) -> Self {
        let seconds = after.at.duration_since(before.at).as_secs_f64().max(f64::EPSILON);
        Self { before, after, seconds }
    }

    /// Returns the value of a gauge.
    pub(super) fn value(&self, name: &str, labels: &[&str]) -> f64 {
        self.after.sum(name, labels)
    }

    /// Returns the increase of a counter per second; zero after a restart of the gateway.
    pub(super) fn rate(&self, name: &str, labels: &[&str]) -> f64 {
        (self.after.sum(name, labels) - self.before.sum(name, labels)).max(0.0) / self.seconds
    }

    /// Returns a quantile of a histogram's values in this time, interpolated within its bucket; `None` without values.
    pub(super) fn quantile(&self, name: &str, label: &str, share: f64) -> Option<f64> {
        let bucket = format!("{name}_bucket");
        let mut buckets: Vec<(f64, f64)> = Vec::new();
        for series in self.after.series.keys() {
            let Some((known, labels)) = series.split_once('{') else { continue };
            if known != bucket || !labels.contains(label) {
                continue;
            }
            let bound = labels.split_once("le=\"").and_then(|(_, rest)| rest.split_once('"'));
            let Some(bound) = bound.and_then(|(bound, _)| bound.replace("+Inf", "inf").parse().ok()) else {
                continue;
            };
            let count = |sample: &Sample| sample.series.get(series).copied().unwrap_or_default();
            buckets.push((bound, count(self.after) - count(self.before)));
        }
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        let all = buckets.last().map(|(_, count)| *count).filter(|count| *count > 0.0)?;
        let (mut lower, mut below) = (0.0, 0.0);
        for (bound, count) in buckets {
            if count >= share * all {
                if bound.is_infinite() || count <= below {
                    return Some(lower);
                }
                return Some(lower + (bound - lower) * (share * all - below) / (count - below));
            }
            (lower, below) = (bound, count);
        }
        Some(lower)
    }
}
