//! Current state of a process: the admin page `/status`, and the gauges of single certificates and endpoints.
//!
//! These gauges are rendered separately for each scrape, because the recorder of all other metrics never drops a
//! series: objects that a reload has removed would remain.

use super::{
    configuration_warnings,
    expiry::{Expiry, ExpiryKind},
    labels::labels,
    last_reload,
    statistics::UpstreamStatistics,
    upstream_counts,
};
use quadrille_engine::Engine;
use quadrille_ocsp::State;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, LazyLock},
};

/// State that is served.
#[derive(Debug, Default)]
pub(crate) struct StatusSnapshot {
    pub(crate) certificates: Arc<[CertificateStatus]>,
    pub(crate) staples: Vec<StapleStatus>,
    /// Certificates that are ordered and not yet issued.
    pub(crate) awaited: Arc<[String]>,
    pub(crate) upstreams: Vec<UpstreamStatus>,
    /// Certificate revocation lists and CAs in use.
    pub(crate) expiries: Arc<[Expiry]>,
}

/// A certificate on a listener.
#[derive(Debug)]
pub(crate) struct CertificateStatus {
    /// Address of the listener.
    pub(crate) listener: String,
    pub(crate) names: Vec<String>,
    pub(crate) key_type: String,
    /// Whether the private key is on key servers.
    pub(crate) remote: bool,
    /// Start of the validity, in Unix time.
    pub(crate) not_before: i64,
    pub(crate) not_after: i64,
    /// Whether it is ordered and renewed by this process.
    pub(crate) ordered: bool,
}

impl CertificateStatus {
    /// Returns whether the renewal is overdue: less than a third of the lifetime is left.
    fn is_late(&self, now: f64) -> bool {
        let third = (self.not_after - self.not_before) / 3;
        self.ordered && now > (self.not_after - third) as f64
    }

    /// Returns the message for the log after its expiry.
    pub(crate) fn expired(&self) -> String {
        let Self { listener, names, key_type, .. } = self;
        let names = names.join(", ");
        format!(
            "the certificate for {names} ({key_type}, listener {listener}) has expired; clients reject it"
        )
    }

    /// Formats the labels: listener, first name and key type.
    fn labels(&self) -> String {
        let Self { listener, names, key_type, .. } = self;
        let name = names.first().map_or("", String::as_str);
        labels(&[("listener", listener), ("name", name), ("key_type", key_type)])
    }
}

/// OCSP response of a certificate.
#[derive(Debug)]
pub(crate) struct StapleStatus {
    /// Index in [`StatusSnapshot::certificates`].
    pub(crate) certificate: usize,
    /// Whether clients reject the certificate without a staple.
    pub(crate) required: bool,
    pub(crate) state: State,
}

/// An upstream with its endpoints.
#[derive(Debug)]
pub(crate) struct UpstreamStatus {
    pub(crate) name: String,
    /// Whether there are health checks; without them, all endpoints count as healthy.
    pub(crate) health_checks: bool,
    /// Whether failing endpoints are ejected.
    pub(crate) outlier_detection: bool,
    /// Number of requests that wait for an endpoint.
    pub(crate) waiting: usize,
    pub(crate) counts: UpstreamStatistics,
    pub(crate) servers: Vec<ServerStatus>,
}

/// An endpoint of an upstream.
#[derive(Debug)]
pub(crate) struct ServerStatus {
    pub(crate) address: String,
    pub(crate) host: String,
    /// Whether its health checks succeed and it is not ejected.
    pub(crate) healthy: bool,
    pub(crate) ejected: bool,
    pub(crate) draining: bool,
    pub(crate) priority: u32,
    /// Number of active requests; `None` if they are not counted.
    pub(crate) active: Option<usize>,
}

impl StatusSnapshot {
    /// Renders the page `/status`.
    pub(crate) fn page(&self, role: &str, ready: bool, engine: &Engine) -> Value {
        json!({
            "role": role,
            "version": env!("CARGO_PKG_VERSION"),
            "started": started(),
            "uptime_seconds": unix_time() - started(),
            "ready": ready,
            "last_reload": last_reload::shown(),
            "warnings": configuration_warnings::shown(),
            "engine": { "backend": engine.backend(), "gpu": engine.overflow().map(quadrille_engine::Overflow::device) },
            "certificates": self.certificates.iter().map(certificate).collect::<Vec<_>>(),
            "ocsp_staples": self.staples.iter().map(|staple| self.staple(staple)).collect::<Vec<_>>(),
            "awaited_certificates": *self.awaited,
            "upstreams": self.upstreams.iter().map(upstream).collect::<Vec<_>>(),
        })
    }

    /// Renders the gauges in Prometheus's text format.
    pub(crate) fn gauges(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, help: &str, samples: BTreeMap<String, f64>| {
            if !samples.is_empty() {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
            }
            for (labels, value) in samples {
                let _ = match labels.is_empty() {
                    true => writeln!(text, "{name} {value}"),
                    false => writeln!(text, "{name}{{{labels}}} {value}"),
                };
            }
        };
        let validities = self.validities();
        let one = |of: fn(&(i64, i64)) -> i64| {
            validities.iter().map(|(labels, both)| (labels.clone(), of(both) as f64)).collect()
        };
        family(
            "quadrille_certificate_not_after_seconds",
            "Expiry time of the certificate, in Unix time",
            one(|(not_after, _)| *not_after),
        );
        family(
            "quadrille_certificate_not_before_seconds",
            "Start of the certificate's validity, in Unix time",
            one(|(_, not_before)| *not_before),
        );
        family(
            "quadrille_acme_certificates",
            "Certificates ordered by ACME, by state",
            self.ordered(unix_time()),
        );
        let staples = &self.staples;
        family(
            "quadrille_ocsp_staples",
            "Certificates for which an OCSP response is fetched or required, by its state",
            states(staples),
        );
        family(
            "quadrille_ocsp_must_staple_missing",
            "Certificates that clients reject, because the required staple is missing",
            refused(staples),
        );
        family(
            "quadrille_ocsp_staple_not_after_seconds",
            "Expiry time of the stapled OCSP response, in Unix time",
            self.staple_expiries(),
        );
        family(
            "quadrille_crl_next_update_seconds",
            "Expiry time of the certificate revocation list, in Unix time",
            self.expiries(ExpiryKind::RevocationList),
        );
        family(
            "quadrille_ca_not_after_seconds",
            "Expiry time of the CA certificate, in Unix time",
            self.expiries(ExpiryKind::Ca),
        );
        family(
            "quadrille_upstream_server_up",
            "Whether the endpoint's health checks succeed and it is not ejected",
            server_samples(&self.upstreams, |upstream, server| {
                upstream.health_checks.then_some(server.healthy)
            }),
        );
        family(
            "quadrille_upstream_server_ejected",
            "Whether the endpoint is ejected because requests to it failed",
            server_samples(&self.upstreams, |upstream, server| {
                upstream.outlier_detection.then_some(server.ejected)
            }),
        );
        family(
            "quadrille_upstream_server_draining",
            "Whether an operator has taken the endpoint out of service",
            server_samples(&self.upstreams, |_, server| server.draining.then_some(true)),
        );
        text + &upstream_counts::metrics(self.upstreams.iter().map(|upstream| &upstream.counts))
    }

    /// Counts ordered certificates by state; empty if none is ordered.
    fn ordered(&self, now: f64) -> BTreeMap<String, f64> {
        let ordered = self.certificates.iter().filter(|certificate| certificate.ordered);
        let (late, current): (Vec<_>, Vec<_>) = ordered.partition(|certificate| certificate.is_late(now));
        let counts = [("current", current.len()), ("late", late.len()), ("missing", self.awaited.len())];
        if counts.iter().all(|(_, count)| *count == 0) {
            return BTreeMap::new();
        }
        counts.map(|(state, count)| (labels(&[("state", state)]), count as f64)).into()
    }

    /// Returns the end and the start of the validity of certificates, by listener, first name and key type; of
    /// several such certificates on a listener, those of the first to expire.
    fn validities(&self) -> BTreeMap<String, (i64, i64)> {
        let validity = |certificate: &CertificateStatus| (certificate.not_after, certificate.not_before);
        first(self.certificates.iter().map(|certificate| (certificate.labels(), validity(certificate))))
    }

    /// Returns the expiry times of stapled OCSP responses, likewise.
    fn staple_expiries(&self) -> BTreeMap<String, f64> {
        let expiries = first(self.staples.iter().filter_map(|staple| match staple.state {
            State::Valid(not_after) => Some((self.certificates.get(staple.certificate)?.labels(), not_after)),
            State::Missing | State::Revoked => None,
        }));
        expiries.into_iter().map(|(labels, not_after)| (labels, not_after as f64)).collect()
    }

    /// Returns the expiry times of lists or CAs, by file and name; of several with both, the first.
    fn expiries(&self, kind: ExpiryKind) -> BTreeMap<String, f64> {
        let label = |expiry: &Expiry| labels(&[("file", &expiry.source), ("name", &expiry.name)]);
        let of_kind = self.expiries.iter().filter(|expiry| expiry.kind == kind);
        let expiries = first(of_kind.map(|expiry| (label(expiry), expiry.not_after)));
        expiries.into_iter().map(|(labels, not_after)| (labels, not_after as f64)).collect()
    }

    fn staple(&self, staple: &StapleStatus) -> Value {
        let certificate = self.certificates.get(staple.certificate);
        json!({
            "listener": certificate.map(|certificate| &certificate.listener),
            "names": certificate.map(|certificate| &certificate.names),
            "must_staple": staple.required,
            "state": state(staple.state),
            "not_after": match staple.state {
                State::Valid(not_after) => Some(not_after),
                State::Missing | State::Revoked => None,
            },
        })
    }
}

/// Keeps the least value of each series.
fn first<T: Ord + Copy>(series: impl Iterator<Item = (String, T)>) -> BTreeMap<String, T> {
    let mut least = BTreeMap::new();
    for (labels, value) in series {
        let known = least.entry(labels).or_insert(value);
        *known = value.min(*known);
    }
    least
}

fn state(state: State) -> &'static str {
    match state {
        State::Valid(_) => "valid",
        State::Missing => "missing",
        State::Revoked => "revoked",
    }
}

/// Counts OCSP responses by state; empty if none is stapled.
fn states(staples: &[StapleStatus]) -> BTreeMap<String, f64> {
    if staples.is_empty() {
        return BTreeMap::new();
    }
    let count = |name: &str| staples.iter().filter(|staple| state(staple.state) == name).count();
    ["valid", "missing", "revoked"].map(|name| (labels(&[("state", name)]), count(name) as f64)).into()
}

/// Counts certificates that clients reject; empty if none requires a staple.
fn refused(staples: &[StapleStatus]) -> BTreeMap<String, f64> {
    let mut required = staples.iter().filter(|staple| staple.required).peekable();
    if required.peek().is_none() {
        return BTreeMap::new();
    }
    let refused = required.filter(|staple| !matches!(staple.state, State::Valid(_))).count();
    [(String::new(), refused as f64)].into()
}

/// Returns the start time of this process, in Unix time.
pub(crate) fn started() -> f64 {
    static STARTED: LazyLock<f64> = LazyLock::new(unix_time);
    *STARTED
}

fn unix_time() -> f64 {
    quadrille_unix_time::since_epoch().as_secs_f64()
}

fn certificate(status: &CertificateStatus) -> Value {
    let CertificateStatus { listener, names, key_type, remote, not_before, not_after, ordered } = status;
    json!({
        "listener": listener,
        "names": names,
        "key_type": key_type,
        "key": if *remote { "key server" } else { "local" },
        "not_before": not_before,
        "not_after": not_after,
        "ordered": ordered,
        "late": status.is_late(unix_time()),
    })
}

fn upstream(upstream: &UpstreamStatus) -> Value {
    let UpstreamStatus { name, health_checks, outlier_detection, waiting, counts, servers } = upstream;
    let servers = servers.iter().map(|server| {
        let ServerStatus { address, host, healthy, ejected, draining, priority, active } = server;
        json!({
            "address": address,
            "host": host,
            "healthy": health_checks.then_some(healthy),
            "ejected": outlier_detection.then_some(ejected),
            "draining": draining,
            "priority": priority,
            "active": active,
        })
    });
    json!({
        "name": name,
        "health_checks": health_checks,
        "waiting": waiting,
        "counts": upstream_counts::page(counts),
        "servers": servers.collect::<Vec<_>>(),
    })
}

/// Returns a sample for each endpoint that `of` has a value for.
fn server_samples(
    upstreams: &[UpstreamStatus],
    of: fn(&UpstreamStatus, &ServerStatus) -> Option<bool>,
) -> BTreeMap<String, f64> {
    let all =
        upstreams.iter().flat_map(|upstream| upstream.servers.iter().map(move |server| (upstream, server)));
    let sample = |(upstream, server): (&UpstreamStatus, &ServerStatus)| {
        let labels = labels(&[("upstream", &upstream.name), ("server", &server.address)]);
        Some((labels, f64::from(u8::from(of(upstream, server)?))))
    };
    all.filter_map(sample).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(name: &str, not_after: i64) -> CertificateStatus {
        CertificateStatus {
            listener: "[::]:443".into(),
            names: vec![name.into()],
            key_type: "rsa2048".into(),
            remote: false,
            not_before: 0,
            not_after,
            ordered: false,
        }
    }

    #[test]
    fn a_series_is_written_once_and_its_labels_escaped() {
        let certificates = [certificate("a\"b\\\n", 7), certificate("c", 9), certificate("c", 8)];
        let certificates =
            certificates.map(|one| CertificateStatus { not_before: (one.not_after - 6).max(1) - 1, ..one });
        let certificates = certificates.into();
        let gauges = StatusSnapshot { certificates, ..StatusSnapshot::default() }.gauges();
        let expected = r#"# HELP quadrille_certificate_not_after_seconds Expiry time of the certificate, in Unix time
# TYPE quadrille_certificate_not_after_seconds gauge
quadrille_certificate_not_after_seconds{listener="[::]:443",name="a\"b\\\n",key_type="rsa2048"} 7
quadrille_certificate_not_after_seconds{listener="[::]:443",name="c",key_type="rsa2048"} 8
# HELP quadrille_certificate_not_before_seconds Start of the certificate's validity, in Unix time
# TYPE quadrille_certificate_not_before_seconds gauge
quadrille_certificate_not_before_seconds{listener="[::]:443",name="a\"b\\\n",key_type="rsa2048"} 0
quadrille_certificate_not_before_seconds{listener="[::]:443",name="c",key_type="rsa2048"} 1
"#;
        assert_eq!(gauges, expected);
    }
}
