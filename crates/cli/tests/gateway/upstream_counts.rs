//! Counts by upstream in `/metrics` and `/status`.

use crate::support::{
    Certificates, Configuration, Gateway, curl_status, document, eventually, listener, ports, quadrille,
    succeed,
};
use serde_json::Value;

#[test]
fn requests_and_failures_are_counted_by_upstream() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams = format!(
        "app: {{servers: ['127.0.0.1:{}'], retries: 2}}, unused: {{servers: ['127.0.0.1:1']}}",
        ports::free()
    );
    let routes = "routes: [{path: /unused, upstream: unused}, {upstream: app}]";
    let configuration = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&configuration.path(), 1);
    for _ in 0..3 {
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "502");
    }
    let app = "upstream=\"app\"";
    gateway
        .wait_for_metric("quadrille_upstream_requests_total", &[app, "status=\"5xx\""], |count| count == 3.0);
    let counts = || {
        let status: Value = serde_json::from_str(&gateway.admin_page("/status")).expect("JSON");
        status["upstreams"][0]["counts"].clone()
    };
    eventually("a request is in progress", || counts()["active"] == 0);
    let counts = counts();
    assert_eq!((&counts["requests"], &counts["responses"]["5xx"]), (&3.into(), &3.into()), "{counts}");
    let failures = gateway.metric("quadrille_upstream_connect_failures_total", &[app]);
    assert_eq!(counts["connect_failures"].as_f64(), Some(failures));
    assert!(failures >= 3.0, "{counts}");
    let address = gateway.admin("");
    let report = succeed(quadrille("top").args(["--interval", "100ms", "--address", &address]));
    assert!(report.contains("UPSTREAM") && report.contains("\napp ") && report.contains("1/1"), "{report}");
    assert!(!gateway.metrics().contains("upstream=\"unused\",status"), "an unused upstream has no series");
}
