//! A smoke test.

use crate::support::{Certificates, Gateway, curl};

#[test]
fn serves_every_http_and_tls_version_that_curl_speaks() {
    let certificates = Certificates::new();
    let gateway = Gateway::with_flags(&certificates.rsa(2048, &["localhost"]), &["--respond", "ok"]);
    for arguments in [&["--http2"][..], &["--http1.1"], &["--tls-max", "1.2"], &["--tlsv1.3"]] {
        assert_eq!(curl(&gateway, &certificates, arguments, "/"), "ok", "{arguments:?}");
    }
    assert_eq!(gateway.metric("quadrille_handshakes_total", &["rsa2048"]), 4.0, "{}", gateway.metrics());
}
