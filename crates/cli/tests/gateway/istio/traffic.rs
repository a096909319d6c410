//! What DestinationRules say of the traffic to a service.

use super::{Mesh, backend, shop};
use crate::support::{Nginx, ports};

/// A gateway before servers with these endpoints, and a DestinationRule with this policy.
fn started(servers: &[&Nginx], policy: &str) -> Option<(Mesh, u16)> {
    let port = ports::free();
    let endpoint =
        |server: &&Nginx| format!("{{ address: 127.0.0.1, ports: {{ http: {} }} }}", server.address().port());
    let endpoints: Vec<_> = servers.iter().map(endpoint).collect();
    let backend = backend(&format!("[ {} ]", endpoints.join(", ")), "");
    let rule = format!(
        "apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {{ name: backend, namespace: istio-system }}
spec:
  host: backend.example.com
  trafficPolicy: {policy}
"
    );
    let mut mesh = Mesh::start("{}", &[("shop", &shop(port)), ("backend", &backend), ("rule", &rule)])?;
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    mesh.await_or_show("agent.log", || {
        mesh.get("shop-cert", "shop.example.com", port, "/").starts_with("right")
    });
    Some((mesh, port))
}

fn answers(mesh: &Mesh, port: u16, requests: usize) -> Vec<String> {
    (0..requests).map(|_| mesh.get("shop-cert", "shop.example.com", port, "/")).collect()
}

#[test]
fn a_server_that_fails_is_left_out() {
    let good = Nginx::new("location / { return 200 right; }");
    let bad = Nginx::new("location / { return 500 wrong; }");
    let policy = "{ loadBalancer: { simple: ROUND_ROBIN }, connectionPool: { tcp: { maxConnections: 100 }, http: { \
                  http1MaxPendingRequests: 10 } }, outlierDetection: { consecutive5xxErrors: 2, interval: 1s, \
                  baseEjectionTime: 60s, maxEjectionPercent: 50 } }";
    let Some((mesh, port)) = started(&[&good, &bad], policy) else { return };
    answers(&mesh, port, 8);
    assert_eq!(answers(&mesh, port, 20), vec!["right 200"; 20]);
    assert_eq!(mesh.refused(), Vec::<String>::new());
    let ejected = mesh.admin_page("/stats?filter=outlier_detection.ejections_active");
    assert!(ejected.contains("backend.example.com.outlier_detection.ejections_active: 1"), "{ejected}");
    let log = mesh.log("agent.log");
    let ignored = log.lines().find(|line| line.contains("outlier_detection") && line.contains("ignored"));
    assert_eq!(ignored, None);
}
