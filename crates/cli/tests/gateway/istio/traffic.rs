//! Traffic policies of DestinationRules.

use super::{Mesh, backend, shop};
use crate::support::{Nginx, ports};

/// Starts a gateway in front of servers with these endpoints, and a DestinationRule with this policy.
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

/// Starts a gateway in front of these servers, with a VirtualService whose only route has these fields.
fn routed(servers: &[&Nginx], route: &str) -> Option<(Mesh, u16)> {
    let (mesh, port) = started(servers, "{ loadBalancer: { simple: ROUND_ROBIN } }")?;
    let destination = "route: [ { destination: { host: backend.example.com, port: { number: 80 } } } ]";
    let shop = shop(port).replace(destination, &format!("{destination}\n    {route}"));
    mesh.configure("shop", &shop);
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

#[test]
fn requests_keep_to_a_server_by_a_header() {
    let servers = [0, 1, 2].map(|name| Nginx::new(&format!("location / {{ return 200 right{name}; }}")));
    let policy = "{ loadBalancer: { consistentHash: { httpHeaderName: x-user } } }";
    let Some((mesh, port)) = started(&[&servers[0], &servers[1], &servers[2]], policy) else { return };
    let of = |user: &str| {
        let header = format!("x-user: {user}");
        let ask = |_| mesh.ask("shop-cert", "shop.example.com", port, "/", &["-H", &header]);
        let all: Vec<_> = (0..5).map(ask).collect();
        assert!(all.iter().all(|answer| *answer == all[0]), "{all:?}");
        all[0].clone()
    };
    let all: std::collections::BTreeSet<_> = (0..20).map(|user| of(&user.to_string())).collect();
    assert_eq!(all.len(), 3, "{all:?}");
}

#[test]
fn pages_of_other_origins_receive_cors_headers() {
    let server = Nginx::new("location / { return 200 right; }");
    let route = "corsPolicy: { allowOrigins: [ { exact: \"https://a.example\" } ], allowMethods: [ GET ], maxAge: 60s }";
    let Some((mesh, port)) = routed(&[&server], route) else { return };
    let asked = |arguments: &[&str]| mesh.ask("shop-cert", "shop.example.com", port, "/", arguments);
    let origin = ["-i", "-H", "Origin: https://a.example"];
    mesh.await_or_show("agent.log", || {
        asked(&origin).to_ascii_lowercase().contains("access-control-allow-origin: https://a.example")
    });
    let preflight = asked(&[
        "-i",
        "-X",
        "OPTIONS",
        "-H",
        "Origin: https://a.example",
        "-H",
        "Access-Control-Request-Method: GET",
    ]);
    let preflight = preflight.to_ascii_lowercase();
    for header in ["access-control-allow-methods: get", "access-control-max-age: 60"] {
        assert!(preflight.contains(header), "{preflight}");
    }
    // Caches must not use these responses for the allowed origin.
    for arguments in [&["-i", "-H", "Origin: https://b.example"][..], &["-i"]] {
        let answer = asked(arguments).to_ascii_lowercase();
        assert!(!answer.contains("access-control") && answer.contains("vary: origin"), "{answer}");
    }
    assert_eq!(mesh.refused(), Vec::<String>::new());
}

#[test]
fn faults_are_injected() {
    let server = Nginx::new("location / { return 200 right; }");
    let route = "fault: { abort: { httpStatus: 418, percentage: { value: 100 } } }";
    let Some((mesh, port)) = routed(&[&server], route) else { return };
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "fault filter abort 418");
    assert_eq!(mesh.refused(), Vec::<String>::new());
}
