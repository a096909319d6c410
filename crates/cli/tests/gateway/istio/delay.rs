//! The mesh's poll delay for private keys.

use super::{Mesh, backend, shop};
use crate::support::{Connector, eventually, ports};
use std::{
    net::TcpStream,
    time::{Duration, Instant},
};

/// Measures the handshake of a single client.
fn handshake(mesh: &Mesh, port: u16) -> Duration {
    let connector = Connector::trusting(&mesh.path("shop-cert-ca.pem"));
    let tcp = TcpStream::connect(("127.0.0.1", port)).expect("the gateway");
    let began = Instant::now();
    connector.named("shop.example.com", tcp).expect("a handshake");
    began.elapsed()
}

/// Returns the delay of the secret delivered by istiod, as shown by the gateway.
fn delivered(mesh: &Mesh) -> Option<String> {
    let dump: serde_json::Value = serde_json::from_str(&mesh.admin_page("/config_dump")).ok()?;
    let secrets = dump["configs"][5]["dynamic_active_secrets"].as_array()?.clone();
    let own = secrets
        .into_iter()
        .find(|secret| secret["name"].as_str().is_some_and(|n| n.contains("shop-cert")))?;
    let provider = &own["secret"]["tls_certificate"]["private_key_provider"];
    Some(provider["typed_config"]["poll_delay"].as_str().unwrap_or("none").to_owned())
}

#[test]
fn a_lone_client_waits_for_the_meshs_delay() {
    let port = ports::free();
    let provided = |delay: &str| {
        format!("defaultConfig: {{ privateKeyProvider: {{ cryptomb: {{ pollDelay: {delay} }} }} }}")
    };
    let started = |mesh_configuration: &str| {
        let endpoints = "[ { address: 127.0.0.1, ports: { http: 1 } } ]";
        let configuration = [("shop", shop(port)), ("backend", backend(endpoints, ""))];
        let configuration = configuration.each_ref().map(|(name, text)| (*name, text.as_str()));
        let mut mesh = Mesh::start(mesh_configuration, &configuration)?;
        mesh.secret("shop-cert", "shop.example.com");
        mesh.start_gateway();
        mesh.await_or_show("agent.log", || {
            mesh.get("shop-cert", "shop.example.com", port, "/").ends_with(" 503")
        });
        Some(mesh)
    };
    // No handshake is shorter than the delay, and each time some handshake is shorter than the previous delay.
    let mut before = Duration::MAX;
    for (delay, shown) in [(200, "0.2s"), (10, "0.01s")] {
        let Some(mesh) = started(&provided(&format!("{delay}ms"))) else { return };
        assert_eq!(delivered(&mesh).as_deref(), Some(shown));
        let delay = Duration::from_millis(delay);
        for _ in 0..20 {
            let waited = handshake(&mesh, port);
            assert!(waited >= delay, "{waited:?} of {delay:?}");
        }
        eventually("no handshake is shorter than before", || handshake(&mesh, port) < before);
        assert!(
            !mesh.log("agent.log").contains("takes effect at the next start"),
            "{}",
            mesh.log("agent.log")
        );
        before = delay;
    }
    // Istio rejects a delay of zero; this value is effectively zero.
    let Some(mesh) = started("{}") else { return };
    assert_eq!(delivered(&mesh).as_deref(), Some("none"));
    eventually("no handshake is without a delay", || handshake(&mesh, port) < before);
}
