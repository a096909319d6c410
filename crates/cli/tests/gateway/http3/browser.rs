//! What others make of it: Chromium.

use super::Served;
use crate::support::{Browser, succeed};
use serde_json::json;
use std::process::Command;

/// Chromium takes certificates of its own CAs only by QUIC, or those of which it is told the key.
#[test]
fn chromium_loads_a_page_by_http3() {
    let served = Served::new(
        "routes: [{path: /answer, respond: right}], respond: {content_type: text/html, body: '<p id=page>here</p>'}",
        "",
    );
    let port = served.gateway.port();
    let key = spki(&served);
    let mut browser = Browser::open_with(
        &[
            &format!("--origin-to-force-quic-on=localhost:{port}"),
            &format!("--ignore-certificate-errors-spki-list={key}"),
            "--enable-quic",
            // It would ask at the address of IPv6, where nobody is.
            "--host-resolver-rules=MAP localhost 127.0.0.1",
        ],
        &format!("https://localhost:{port}/"),
    );
    browser.wait_until("document.getElementById('page') !== null");
    assert_eq!(browser.evaluate("fetch('/answer').then(answer => answer.text())"), json!("right"));
    let by = "performance.getEntriesByType('navigation')[0].nextHopProtocol";
    assert_eq!(browser.evaluate(by), json!("h3"));
    let posted =
        "fetch('/answer', {method: 'POST', body: 'x'.repeat(1000000)}).then(answer => answer.status)";
    assert_eq!(browser.evaluate(posted), json!(200));
    assert!(served.gateway.metric("quadrille_quic_handshakes_total", &[]) >= 1.0);
}

/// Of the certificate's public key, the SHA-256 in Base64.
fn spki(served: &Served) -> String {
    let script = "openssl x509 -pubkey -noout -in \"$0\" | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | openssl base64";
    succeed(Command::new("sh").args(["-c", script]).arg(&served.pair.chain)).trim().to_owned()
}
