//! HTTP/3 with Chromium.

use super::Served;
use crate::support::{Browser, succeed};
use serde_json::json;
use std::process::Command;

/// Chromium accepts over QUIC only certificates of its own CAs, or those whose key hash is given by a flag.
#[test]
fn chromium_loads_a_page_by_http3() {
    let served = Served::new(
        "routes: [{path: /text, respond: right}], respond: {content_type: text/html, body: '<p id=page>here</p>'}",
        "",
    );
    let port = served.gateway.port();
    let key = spki(&served);
    let mut browser = Browser::open_with(
        &[
            &format!("--origin-to-force-quic-on=localhost:{port}"),
            &format!("--ignore-certificate-errors-spki-list={key}"),
            "--enable-quic",
            // Chromium would connect to the IPv6 address, which has no listener.
            "--host-resolver-rules=MAP localhost 127.0.0.1",
        ],
        &format!("https://localhost:{port}/"),
    );
    browser.wait_until("document.getElementById('page') !== null");
    assert_eq!(browser.evaluate("fetch('/text').then(response => response.text())"), json!("right"));
    let by = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.evaluate(by), json!("h3"));
    let posted =
        "fetch('/text', {method: 'POST', body: 'x'.repeat(1000000)}).then(response => response.status)";
    assert_eq!(browser.evaluate(posted), json!(200));
    assert!(served.gateway.metric("quadrille_quic_handshakes_total", &[]) >= 1.0);
}

/// Returns the SHA-256 of the certificate's public key, in Base64.
fn spki(served: &Served) -> String {
    let script = "openssl x509 -pubkey -noout -in \"$0\" | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | openssl base64";
    succeed(Command::new("sh").args(["-c", script]).arg(&served.pair.chain)).trim().to_owned()
}
