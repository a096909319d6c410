//! `/stats`: statistics under Envoy's names.

use super::{sample::Sample, server_state::ServerState, xds};
use crate::xds_manager::XdsManager;
use quadrille_envoy::Resources;
use quadrille_gateway::{AdminView, ChainStatistics, ListenerStatistics, Statistics, UpstreamStatistics};
use regex::Regex;
use serde_json::json;
use std::{collections::BTreeMap, fmt::Write};

/// Output format of the statistics.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Format {
    Text,
    Json,
    Prometheus,
}

/// Gauges whose zero is meaningful: `usedonly` does not hide them.
const ALWAYS_USED: [&str; 2] = ["server.state", "listener_manager.workers_started"];

/// Renders the statistics whose names match.
pub(super) fn page(
    counted: &Statistics,
    xds: &XdsManager,
    view: (&AdminView, ServerState),
    filter: &Regex,
    used_only: bool,
    format: Format,
) -> String {
    let mut samples = samples(counted, xds, view);
    let is_used = |sample: &Sample| sample.value > 0 || ALWAYS_USED.contains(&sample.name.as_str());
    samples.retain(|sample| filter.is_match(&sample.name) && (!used_only || is_used(sample)));
    samples.sort_by(|one, other| one.name.cmp(&other.name));
    let sizes = filter.is_match(QUEUE_SIZES).then(|| Sizes::new(&counted.batch_sizes));
    let sizes = sizes.filter(|sizes| !(used_only && sizes.total == 0));
    match format {
        Format::Text => {
            let lines = samples.iter().map(|sample| format!("{}: {}\n", sample.name, sample.value));
            lines.chain(sizes.map(|sizes| format!("{QUEUE_SIZES}: {}\n", sizes.quantiles()))).collect()
        }
        Format::Json => {
            let stats = samples.iter().map(|sample| json!({ "name": sample.name, "value": sample.value }));
            format!("{}\n", json!({ "stats": stats.collect::<Vec<_>>() }))
        }
        Format::Prometheus => prometheus(&samples, sizes.as_ref()),
    }
}

const QUEUE_SIZES: &str = "cryptomb.rsa_queue_sizes";

fn samples(counted: &Statistics, xds: &XdsManager, (view, state): (&AdminView, ServerState)) -> Vec<Sample> {
    let mut samples = Vec::new();
    for listener in &counted.listeners {
        listener_samples(listener, &mut samples);
    }
    http_samples(counted, &xds.active().resources, &mut samples);
    for upstream in &counted.upstreams {
        cluster_samples(upstream, &mut samples);
    }
    samples.extend(xds::samples(xds.stats()));
    let uptime = view.status["uptime_seconds"].as_f64().unwrap_or_default() as u64;
    let started = u64::from(state != ServerState::Initializing);
    let gauges = [
        ("server.live", u64::from(view.ready)),
        ("server.state", state as u64),
        ("server.uptime", uptime),
        ("listener_manager.workers_started", started),
    ];
    for (name, value) in gauges {
        samples.push(Sample {
            name: name.to_owned(),
            family: format!("envoy_{}", name.replace('.', "_")),
            labels: Vec::new(),
            value,
            gauge: true,
        });
    }
    samples
}

/// Formats the listener's address as in Envoy's statistic names, with underscores in place of colons.
fn address(listener: &ListenerStatistics) -> String {
    listener.address.replace(':', "_")
}

fn listener_samples(listener: &ListenerStatistics, samples: &mut Vec<Sample>) {
    let address = address(listener);
    let sum = |count: fn(&ChainStatistics) -> u64| listener.chains.iter().map(count).sum::<u64>();
    let counters = [
        ("downstream_cx_total", listener.accepted),
        ("downstream_cx_destroy", listener.accepted.saturating_sub(listener.active)),
        ("downstream_cx_overflow", listener.overflow),
        ("no_filter_chain_match", listener.no_chain),
        ("ssl.handshake", sum(|chain| chain.handshakes)),
        ("ssl.session_reused", sum(|chain| chain.resumed)),
        ("ssl.connection_error", sum(|chain| chain.failures)),
        ("ssl.fail_verify_no_cert", sum(|chain| chain.no_certificate)),
        ("ssl.fail_verify_error", sum(|chain| chain.bad_certificate)),
        ("ssl.fail_verify_san", sum(|chain| chain.bad_name)),
        ("ssl.fail_verify_cert_hash", sum(|chain| chain.bad_pin)),
    ];
    let all = counters.map(|(name, value)| (name, value, false));
    for (name, value, gauge) in all.into_iter().chain([("downstream_cx_active", listener.active, true)]) {
        samples.push(Sample {
            name: format!("listener.{address}.{name}"),
            family: format!("envoy_listener_{}", name.replace('.', "_")),
            labels: vec![("envoy_listener_address", address.clone())],
            value,
            gauge,
        });
    }
}

/// Adds the request statistics, which are counted by the `stat_prefix` of the connection manager.
fn http_samples(counted: &Statistics, resources: &Resources, samples: &mut Vec<Sample>) {
    let mut by_prefix: BTreeMap<&str, [u64; 6]> = BTreeMap::new();
    for listener in &counted.listeners {
        let Some(configured) = resources.listeners.get(&listener.name) else { continue };
        for (prefix, counts) in configured.stat_prefixes().zip(&listener.chains) {
            let Some(prefix) = prefix else { continue };
            let sums = by_prefix.entry(prefix).or_default();
            sums.iter_mut().zip(counts.requests).for_each(|(sum, count)| *sum += count);
        }
    }
    for (prefix, classes) in by_prefix {
        let label = ("envoy_http_conn_manager_prefix", prefix.to_owned());
        samples.push(Sample {
            name: format!("http.{prefix}.downstream_rq_completed"),
            family: "envoy_http_downstream_rq_completed".into(),
            labels: vec![label.clone()],
            value: classes.iter().sum(),
            gauge: false,
        });
        samples.extend(class_samples(
            &format!("http.{prefix}.downstream_rq"),
            "envoy_http_downstream_rq",
            &label,
            classes,
        ));
    }
}

fn class_samples<'a>(
    name: &'a str,
    family: &'a str,
    label: &'a (&'static str, String),
    classes: [u64; 6],
) -> impl Iterator<Item = Sample> + 'a {
    (1..=5).map(move |class| Sample {
        name: format!("{name}_{class}xx"),
        family: format!("{family}_xx"),
        labels: vec![("envoy_response_code_class", class.to_string()), label.clone()],
        value: classes[class],
        gauge: false,
    })
}

fn cluster_samples(upstream: &UpstreamStatistics, samples: &mut Vec<Sample>) {
    let name = &upstream.name;
    let label = ("envoy_cluster_name", name.clone());
    let count = |servers: usize| u64::try_from(servers).unwrap_or(u64::MAX);
    for (what, value, gauge) in [
        ("upstream_rq_total", upstream.requests, false),
        ("upstream_rq_completed", upstream.responses.iter().skip(1).sum(), false),
        ("upstream_rq_active", upstream.active, true),
        ("upstream_rq_retry", upstream.retries, false),
        ("upstream_rq_timeout", upstream.timeouts, false),
        ("upstream_cx_connect_fail", upstream.connect_failures, false),
        ("upstream_cx_none_healthy", upstream.no_server, false),
        ("upstream_rq_pending_overflow", upstream.overflow, false),
        ("outlier_detection.ejections_enforced_total", upstream.ejections, false),
        ("outlier_detection.ejections_active", count(upstream.left_out), true),
        ("membership_total", count(upstream.servers), true),
        ("membership_healthy", count(upstream.healthy), true),
    ] {
        samples.push(Sample {
            name: format!("cluster.{name}.{what}"),
            family: format!("envoy_cluster_{}", what.replace('.', "_")),
            labels: vec![label.clone()],
            value,
            gauge,
        });
    }
    samples.extend(class_samples(
        &format!("cluster.{name}.upstream_rq"),
        "envoy_cluster_upstream_rq",
        &label,
        upstream.responses,
    ));
}

fn prometheus(samples: &[Sample], sizes: Option<&Sizes<'_>>) -> String {
    let mut families: BTreeMap<&str, Vec<&Sample>> = BTreeMap::new();
    for sample in samples {
        families.entry(&sample.family).or_default().push(sample);
    }
    let mut text = String::new();
    for (family, samples) in families {
        let kind = if samples[0].gauge { "gauge" } else { "counter" };
        let _ = writeln!(text, "# TYPE {family} {kind}");
        for sample in samples {
            let _ = writeln!(text, "{family}{{{}}} {}", labels(&sample.labels), sample.value);
        }
    }
    if let Some(sizes) = sizes {
        sizes.write(&mut text);
    }
    text
}

fn labels(labels: &[(&str, String)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect::<Vec<_>>().join(",")
}

/// Number of batches by size.
struct Sizes<'a> {
    counts: &'a [u64],
    total: u64,
}

impl<'a> Sizes<'a> {
    fn new(counts: &'a [u64]) -> Self {
        Self { counts, total: counts.iter().sum() }
    }

    /// Formats the histogram as Envoy does: the interval, which is not kept here, and the total since the start.
    fn quantiles(&self) -> String {
        let at = |percent: f64| {
            let rank = (percent / 100.0 * self.total as f64).ceil().max(1.0) as u64;
            let mut seen = 0;
            self.counts.iter().position(|count| {
                seen += count;
                seen >= rank
            })
        };
        if self.total == 0 {
            return "No recorded values".to_owned();
        }
        let percents = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 100.0];
        let one = |percent: &f64| format!("P{percent}(nan,{})", at(*percent).unwrap_or_default());
        percents.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn write(&self, text: &mut String) {
        const NAME: &str = "envoy_cryptomb_rsa_queue_sizes";
        let _ = writeln!(text, "# TYPE {NAME} histogram");
        let (mut below, mut sum) = (0u64, 0u64);
        for (size, count) in (0u64..).zip(self.counts) {
            below += count;
            sum += size * count;
            let _ = writeln!(text, "{NAME}_bucket{{le=\"{size}\"}} {below}");
        }
        let _ =
            writeln!(text, "{NAME}_bucket{{le=\"+Inf\"}} {below}\n{NAME}_sum {sum}\n{NAME}_count {below}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram() {
        let counts = [0, 50, 25, 0, 0, 0, 0, 0, 25];
        let sizes = Sizes::new(&counts);
        assert!(sizes.quantiles().starts_with("P0(nan,1) P25(nan,1) P50(nan,1) P75(nan,2) P90(nan,8)"));
        let mut text = String::new();
        sizes.write(&mut text);
        assert!(
            text.contains("_bucket{le=\"2\"} 75\n")
                && text.ends_with("_sum 300\nenvoy_cryptomb_rsa_queue_sizes_count 100\n")
        );
        assert_eq!(Sizes::new(&[0, 0]).quantiles(), "No recorded values");
    }
}
