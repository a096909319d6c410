//! Istio's own defaults: no feature is disabled for the gateway.

use super::{Mesh, backend, shop};
use crate::support::{Nginx, eventually, ports, succeed};
use serde_json::Value;
use std::{net::TcpStream, process::Command};

/// Starts a gateway in front of a backend that responds with `right`.
fn started() -> Option<(Mesh, Nginx, u16)> {
    let nginx = Nginx::new("location / { return 200 right; }");
    let port = ports::free();
    let endpoints = format!("[ {{ address: 127.0.0.1, ports: {{ http: {} }} }} ]", nginx.address().port());
    let mut mesh = Mesh::start("{}", &[("shop", &shop(port)), ("backend", &backend(&endpoints, ""))])?;
    mesh.secret("shop-cert", "shop.example.com");
    mesh.start_gateway();
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "right 200");
    Some((mesh, nginx, port))
}

#[test]
fn requests_are_answered_and_nothing_is_refused() {
    let Some((mesh, _nginx, port)) = started() else { return };
    assert_eq!(mesh.refused(), Vec::<String>::new());
    let log = mesh.log("istiod.log");
    // Istiod's fake Kubernetes client also returns every Secret as another cluster's kubeconfig.
    let mut log = log.lines().filter(|line| !line.contains("kubeconfig"));
    let complaints = ["cannot unmarshal", "Subscribed resources check mismatch"];
    assert_eq!(log.find(|line| complaints.iter().any(|complaint| line.contains(complaint))), None);
    // A changed Secret is served without a restart.
    mesh.secret("shop-cert", "shop.example.com");
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "right 200");
}

#[test]
fn the_agent_finds_the_pages_that_it_asks_envoy_for() {
    let Some((mesh, _nginx, _)) = started() else { return };
    assert_eq!(mesh.admin_page("/ready"), "LIVE\n");
    // The two requests of the agent's readiness probe.
    let state =
        mesh.admin_page("/stats?usedonly&filter=^(server\\.state|listener_manager\\.workers_started)");
    assert_eq!(state, "listener_manager.workers_started: 1\nserver.state: 0\n");
    let updates = mesh.admin_page(
        "/stats?usedonly&filter=^(cluster_manager\\.cds|listener_manager\\.lds)\\.(update_success|update_rejected)$",
    );
    assert!(updates.contains("cluster_manager.cds.update_success: "), "{updates}");
    assert!(updates.contains("listener_manager.lds.update_success: "), "{updates}");
    assert!(!updates.contains("update_rejected"), "{updates}");
    let dump: Value = serde_json::from_str(&mesh.admin_page("/config_dump")).expect("JSON");
    let node = &dump["configs"][0]["bootstrap"]["node"];
    assert_eq!(node["metadata"]["CLUSTER_ID"], "Kubernetes");
    assert_eq!(node["metadata"]["ENVOY_STATUS_PORT"], mesh.probes);
    let id = node["id"].as_str().expect("an id");
    assert!(id.starts_with("router~192.0.2.2~gateway-1.istio-system~"), "{id}");
    let info: Value = serde_json::from_str(&mesh.admin_page("/server_info")).expect("JSON");
    assert_eq!((&info["state"], &info["node"]["id"]), (&"LIVE".into(), &id.into()));
    // The Prometheus listener of the agent's bootstrap forwards to the admin address.
    let url = format!("http://127.0.0.1:{}/stats/prometheus", mesh.metrics);
    let metrics = succeed(Command::new("curl").args(["-sS", "--fail", "--noproxy", "*", &url]));
    assert!(metrics.contains("envoy_server_state"), "{metrics}");
}

#[test]
fn the_agent_drains_the_gateway_as_it_drains_envoy() {
    let Some((mesh, _nginx, port)) = started() else { return };
    let drain = |query: &str| {
        let url = format!("http://127.0.0.1:{}/drain_listeners{query}", mesh.admin);
        succeed(Command::new("curl").args(["-sS", "--noproxy", "*", "-X", "POST", "--data", "", &url]))
    };
    assert_eq!(mesh.admin_page("/drain_listeners"), "Method GET not allowed, POST required.\n");
    assert_eq!(drain("?graceful&skip_exit"), "OK\n");
    // Connections are still accepted, and closed after their first response.
    assert_eq!(mesh.get("shop-cert", "shop.example.com", port, "/"), "right 200");
    assert_eq!(drain(""), "OK\n");
    eventually("the listener is still open", || TcpStream::connect(("127.0.0.1", port)).is_err());
    assert_eq!(mesh.admin_page("/ready"), "LIVE\n", "as in Envoy");
}

#[test]
fn istiod_may_stop_and_restart() {
    let Some((mut mesh, nginx, port)) = started() else { return };
    mesh.stop_istiod();
    for _ in 0..20 {
        assert_eq!(mesh.get("shop-cert", "shop.example.com", port, "/"), "right 200");
    }
    let other = Nginx::new("location / { return 200 other; }");
    let endpoints = format!("[ {{ address: 127.0.0.1, ports: {{ http: {} }} }} ]", other.address().port());
    mesh.configure("backend", &backend(&endpoints, ""));
    mesh.start_istiod();
    mesh.await_answer("shop-cert", "shop.example.com", port, "/", "other 200");
    drop(nginx);
}
