//! Endpoints that change while clients send requests.

use super::{Cluster, endpoints, ingress, ingress_with_tls, secret_of, slice};
use crate::support::{Load, Nginx, eventually};
use serde_json::json;
use std::net::SocketAddr;

#[test]
fn endpoints_change_without_lost_requests() {
    let cluster = Cluster::new(&[]);
    let pair = cluster.certificates.ecdsa("P-256", &["localhost"]);
    cluster.server.put(&secret_of("tls", &pair));
    cluster.server.put(&ingress_with_tls("web", "localhost", "tls"));
    eventually("no page", || cluster.get_https("localhost").is_ok_and(|body| body.contains("app")));
    let other = Nginx::new("location / { return 200 other; }");
    let load = Load::start(&cluster.certificates, cluster.https, "/", |body| {
        body.starts_with("app") || body.starts_with("other")
    });
    for round in 0..30 {
        let (address, name) = match round % 2 {
            0 => (other.address(), "other"),
            _ => (cluster.app.address(), "app"),
        };
        cluster.server.put(&endpoints("app", &[address]));
        eventually("the endpoints are not live", || {
            cluster.get_https("localhost").is_ok_and(|body| body.contains(name))
        });
    }
    eventually("little load", || load.answered() > 100);
    load.finish();
}

/// Endpoints that terminate receive requests only while there are no others.
#[test]
fn terminating_endpoints_are_drained() {
    let cluster = Cluster::new(&[]);
    cluster.server.put(&ingress("web", "a.example", &["/"]));
    cluster.eventually_served("a.example", "/", (200, "app"));
    let leaving = json!({ "ready": false, "serving": true, "terminating": true });
    let gone = json!({ "ready": false, "serving": false, "terminating": true });
    let app = cluster.app.address();
    cluster.server.put(&slice("app", &[(app, leaving.clone())]));
    cluster.gateway.wait_for_metric("quadrille_kubernetes_updates_total", &["ok"], |count| count >= 3.0);
    assert_eq!(cluster.get("a.example", "/"), (200, "app".to_owned()));
    // One that is ready replaces it; no server listens there.
    let dead = SocketAddr::from(([127, 0, 0, 2], app.port()));
    cluster.server.put(&slice("app", &[(dead, json!({ "ready": true })), (app, leaving)]));
    cluster.eventually_served("a.example", "/", (502, ""));
    cluster.server.put(&slice("app", &[(app, gone)]));
    cluster.eventually_served("a.example", "/", (503, ""));
}
