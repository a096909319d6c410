//! Entries of the metric table.

/// A metric with its labels.
pub(super) struct Metric {
    pub(super) kind: MetricType,
    pub(super) name: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page"))]
    pub(super) labels: &'static [&'static str],
    /// Help text, with units, and with those label values that are not self-explanatory.
    pub(super) help: &'static str,
}

/// Type of a metric in Prometheus.
pub(super) enum MetricType {
    Counter,
    Gauge,
    Histogram,
}

/// Metrics under one heading of the page.
pub(super) struct Group {
    #[cfg_attr(not(test), expect(dead_code, reason = "for the page"))]
    pub(super) heading: &'static str,
    pub(super) metrics: &'static [Metric],
}

pub(super) const fn counter(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { kind: MetricType::Counter, name, labels, help }
}

pub(super) const fn gauge(name: &'static str, labels: &'static [&'static str], help: &'static str) -> Metric {
    Metric { kind: MetricType::Gauge, name, labels, help }
}

pub(super) const fn histogram(
    name: &'static str,
    labels: &'static [&'static str],
    help: &'static str,
) -> Metric {
    Metric { kind: MetricType::Histogram, name, labels, help }
}
