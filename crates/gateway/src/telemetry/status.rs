//! What a process serves just now: the admin page `/status`, and the gauges that tell of single certificates and servers.
//!
//! These gauges are written anew for each scrape, because the recorder of all other metrics never forgets a series: what
//! a reload has removed would stay.

use crate::{
    model::Listener,
    tls::certificate::{Certificate, PrivateKey},
    upstream::{Upstream, Upstreams},
};
use quadrille_engine::Engine;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Write,
    sync::{Arc, LazyLock},
};

/// What is served.
#[derive(Default)]
pub(crate) struct InForce {
    certificates: Vec<Served>,
    upstreams: Vec<Arc<Upstream>>,
}

/// A certificate on a listener.
struct Served {
    listener: String,
    names: Vec<String>,
    key_type: String,
    /// Whether the private key is on key servers.
    remote: bool,
    /// Unix time.
    not_before: i64,
    not_after: i64,
}

impl InForce {
    pub(crate) fn new(upstreams: &Upstreams) -> Self {
        Self { certificates: Vec::new(), upstreams: upstreams.values().cloned().collect() }
    }

    /// Adds a listener's certificates.
    pub(crate) fn add(&mut self, listener: &Listener, certificates: &[Arc<Certificate>]) {
        self.certificates.extend(certificates.iter().map(|certificate| Served {
            listener: listener.address.to_string(),
            names: certificate.names.clone(),
            key_type: certificate.key.key_type().to_string(),
            remote: matches!(certificate.key, PrivateKey::Remote(_)),
            not_before: certificate.not_before,
            not_after: certificate.not_after,
        }));
    }

    /// The page `/status`.
    pub(crate) fn status(&self, role: &str, ready: bool, engine: &Engine) -> Value {
        json!({
            "role": role,
            "version": env!("CARGO_PKG_VERSION"),
            "started": started(),
            "uptime_seconds": unix_time() - started(),
            "ready": ready,
            "engine": { "backend": engine.backend(), "gpu": engine.overflow().map(quadrille_engine::Overflow::device) },
            "certificates": self.certificates.iter().map(certificate).collect::<Vec<_>>(),
            "upstreams": self.upstreams.iter().map(|shown| upstream(shown)).collect::<Vec<_>>(),
        })
    }

    /// The gauges, in Prometheus's text form.
    pub(crate) fn gauges(&self) -> String {
        let mut text = String::new();
        let mut family = |name: &str, help: &str, samples: BTreeMap<String, f64>| {
            if !samples.is_empty() {
                let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
            }
            for (labels, value) in samples {
                let _ = writeln!(text, "{name}{{{labels}}} {value}");
            }
        };
        family(
            "quadrille_certificate_not_after_seconds",
            "When the certificate expires, in Unix time",
            self.expiries(),
        );
        family(
            "quadrille_upstream_server_up",
            "Whether the server's health checks succeed",
            self.upstreams.iter().flat_map(|upstream| healths(upstream)).collect(),
        );
        text
    }

    /// By listener, first name and key type; where a listener has several such certificates, the first to expire.
    fn expiries(&self) -> BTreeMap<String, f64> {
        let mut expiries = BTreeMap::new();
        for Served { listener, names, key_type, not_after, .. } in &self.certificates {
            let name = names.first().map_or("", String::as_str);
            let labels = labels(&[("listener", listener), ("name", name), ("key_type", key_type)]);
            let expiry = expiries.entry(labels).or_insert(f64::INFINITY);
            *expiry = expiry.min(*not_after as f64);
        }
        expiries
    }
}

/// When this process has started, in Unix time.
pub(crate) fn started() -> f64 {
    static STARTED: LazyLock<f64> = LazyLock::new(unix_time);
    *STARTED
}

fn unix_time() -> f64 {
    quadrille_resumption::unix_now().as_secs_f64()
}

fn certificate(served: &Served) -> Value {
    let Served { listener, names, key_type, remote, not_before, not_after } = served;
    json!({
        "listener": listener,
        "names": names,
        "key_type": key_type,
        "key": if *remote { "key server" } else { "local" },
        "not_before": not_before,
        "not_after": not_after,
    })
}

fn upstream(upstream: &Upstream) -> Value {
    let checked = upstream.model().health.is_some();
    let servers = upstream.servers().into_iter().map(|(server, well)| {
        json!({
            "address": server.address.to_string(),
            "host": &*server.host,
            "healthy": checked.then_some(well),
        })
    });
    json!({
        "name": upstream.name(),
        "health_checks": checked,
        "servers": servers.collect::<Vec<_>>(),
    })
}

fn healths(upstream: &Upstream) -> Vec<(String, f64)> {
    if upstream.model().health.is_none() {
        return Vec::new();
    }
    let sample = |address: String, well| {
        (labels(&[("upstream", upstream.name()), ("server", &address)]), f64::from(u8::from(well)))
    };
    upstream.servers().into_iter().map(|(server, well)| sample(server.address.to_string(), well)).collect()
}

/// Values escaped as the text form wants it.
fn labels(labels: &[(&str, &str)]) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let each = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
    each.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(name: &str, not_after: i64) -> Served {
        Served {
            listener: "[::]:443".into(),
            names: vec![name.into()],
            key_type: "rsa2048".into(),
            remote: false,
            not_before: 0,
            not_after,
        }
    }

    #[test]
    fn a_series_is_written_once_and_its_labels_escaped() {
        let certificates = vec![served("a\"b\\\n", 7), served("c", 9), served("c", 8)];
        let gauges = InForce { certificates, upstreams: Vec::new() }.gauges();
        let expected = r#"# HELP quadrille_certificate_not_after_seconds When the certificate expires, in Unix time
# TYPE quadrille_certificate_not_after_seconds gauge
quadrille_certificate_not_after_seconds{listener="[::]:443",name="a\"b\\\n",key_type="rsa2048"} 7
quadrille_certificate_not_after_seconds{listener="[::]:443",name="c",key_type="rsa2048"} 8
"#;
        assert_eq!(gauges, expected);
    }
}
