//! `/clusters`.

use super::address::socket_address;
use quadrille_gateway::{Statistics, UpstreamStatistics};
use serde_json::{Value, json};
use std::fmt::Write;

/// An endpoint, as the gateway's `/status` reports it.
struct Server {
    address: String,
    host: String,
    /// `None` without health checks.
    healthy: Option<bool>,
}

fn servers(name: &str, status: &Value) -> Vec<Server> {
    let upstreams = status["upstreams"].as_array().map(Vec::as_slice).unwrap_or_default();
    let found = upstreams.iter().find(|upstream| upstream["name"] == name);
    let servers = found.and_then(|upstream| upstream["servers"].as_array()).map(Vec::as_slice);
    let text = |server: &Value, key: &str| server[key].as_str().unwrap_or_default().to_owned();
    let server = |server: &Value| Server {
        address: text(server, "address"),
        host: text(server, "host"),
        healthy: server["healthy"].as_bool(),
    };
    servers.unwrap_or_default().iter().map(server).collect()
}

pub(super) fn text(counted: &Statistics, status: &Value) -> String {
    let mut text = String::new();
    for UpstreamStatistics { name, .. } in &counted.upstreams {
        let _ = writeln!(text, "{name}::observability_name::{name}");
        for server in servers(name, status) {
            let flags = if server.healthy == Some(false) { "/failed_active_hc" } else { "healthy" };
            let Server { address, host, .. } = server;
            let _ = writeln!(text, "{name}::{address}::hostname::{host}");
            let _ = writeln!(text, "{name}::{address}::health_flags::{flags}");
        }
    }
    text
}

pub(super) fn json(counted: &Statistics, status: &Value) -> Value {
    let host = |server: Server| {
        let health = match server.healthy {
            Some(false) => json!({ "failed_active_health_check": true, "eds_health_status": "HEALTHY" }),
            _ => json!({ "eds_health_status": "HEALTHY" }),
        };
        json!({
            "address": socket_address(&server.address),
            "hostname": server.host,
            "health_status": health,
        })
    };
    let cluster = |upstream: &UpstreamStatistics| {
        json!({
            "name": upstream.name,
            "observability_name": upstream.name,
            "host_statuses": servers(&upstream.name, status).into_iter().map(host).collect::<Vec<_>>(),
        })
    };
    json!({ "cluster_statuses": counted.upstreams.iter().map(cluster).collect::<Vec<_>>() })
}
