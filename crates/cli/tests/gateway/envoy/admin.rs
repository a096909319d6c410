//! Envoy's admin pages on the bootstrap's admin address.

use super::{certificates, serving, with_common};
use crate::support::{Gateway, curl, output};
use std::process::Command;

fn json(gateway: &Gateway, path: &str) -> serde_json::Value {
    serde_json::from_str(&gateway.admin_page(path)).expect("JSON")
}

#[test]
fn the_pages_are_envoys_and_show_no_secret() {
    let (certificates, pair) = certificates();
    let key = std::fs::read_to_string(&pair.key).expect("a key");
    let inline = format!(
        "tls_certificates: [ {{ certificate_chain: {{ filename: /path/cert.pem }}, private_key: {{ inline_string: \"{}\" }} }} ]",
        key.replace('\n', "\\n")
    );
    let (gateway, _file) = serving(&with_common(&inline, &pair));
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
    assert_eq!(gateway.admin_page("/ready"), "LIVE\n");
    let handshakes = gateway.admin_page("/stats?filter=ssl.handshake");
    assert!(handshakes.starts_with("listener.127.0.0.1_0.ssl.handshake: 1"), "{handshakes}");
    assert!(gateway.admin_page("/stats?filter=cryptomb").starts_with("cryptomb.rsa_queue_sizes: P0(nan,1)"));
    let large =
        output(Command::new("curl").args(["-sS", "--globoff", &gateway.admin("/stats?filter=(a{99}){999}")]));
    assert_eq!(large, (true, "the filter is too large\n".to_owned()));
    let prometheus = gateway.admin_page("/stats/prometheus");
    for series in [
        "envoy_listener_ssl_session_reused{envoy_listener_address=\"127.0.0.1_0\"} 0",
        "envoy_http_downstream_rq_xx{envoy_response_code_class=\"2\",envoy_http_conn_manager_prefix=\"web\"} 1",
        "envoy_cryptomb_rsa_queue_sizes_count 1",
        "envoy_server_live{} 1",
    ] {
        assert!(prometheus.contains(series), "{series}\n{prometheus}");
    }
    let certificate = &json(&gateway, "/certs")["certificates"][0]["cert_chain"][0];
    assert_eq!(certificate["subject_alt_names"][0]["dns"], "localhost");
    assert_eq!(json(&gateway, "/listeners?format=json")["listener_statuses"][0]["name"], "web");
    assert!(json(&gateway, "/clusters?format=json")["cluster_statuses"].is_array());
    let dump = gateway.admin_page("/config_dump");
    assert!(dump.contains("[redacted]") && dump.contains("\"stat_prefix\": \"web\""), "{dump}");
    let lines = key.lines().filter(|line| !line.starts_with("-----"));
    assert!(lines.into_iter().all(|line| !dump.contains(line)), "the private key is in the dump");
}
