//! Mirroring of requests.

use crate::support::{
    Certificates, Configuration, Gateway, PATIENCE, curl, curl_status, document, echo_server, listener,
    ports, recording_server, throughout,
};
use std::{net::SocketAddr, sync::mpsc::Receiver, time::Duration};

/// Starts a gateway in front of a server that echoes requests, and one that receives the copies.
struct Served {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Served {
    fn new(mirror: &str, shadow: SocketAddr) -> Self {
        Self::giving_up_after("600s", mirror, shadow)
    }

    /// Starts it with this timeout for the responses to copies.
    fn giving_up_after(read: &str, mirror: &str, shadow: SocketAddr) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let route = format!(
            "routes: [{{path: /, upstream: web, rewrite: /new, request_headers: [{{set: X-Seen, value: \"yes\"}}], \
             mirror: {mirror}}}]"
        );
        let upstreams = format!(
            "web: {{servers: [\"{}\"]}}, shadow: {{servers: [\"{shadow}\"], timeouts: {{connect: 600s, read: {read}}}}}",
            echo_server()
        );
        let file = Configuration::new(&document(&[listener(&pair, &route)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn mirrored(&self, result: &str) -> f64 {
        self.gateway.metric("quadrille_requests_mirrored_total", &[result])
    }
}

fn next(copies: &Receiver<Vec<u8>>) -> String {
    String::from_utf8(copies.recv_timeout(PATIENCE).expect("a copy")).expect("a request")
}

#[test]
fn another_server_receives_the_forwarded_request_and_its_response_is_discarded() {
    let (shadow, copies) = recording_server();
    let served = Served::new("[shadow]", shadow);
    for version in ["--http1.1", "--http2"] {
        let answer =
            curl(&served.gateway, &served.certificates, &[version, "--data-binary", "some text"], "/a?b");
        assert!(
            answer.starts_with("POST /new/a?b HTTP/1.1\r\n") && answer.ends_with("\r\n\r\nsome text"),
            "{answer}"
        );
        let copy = next(&copies);
        assert!(
            copy.starts_with("POST /new/a?b HTTP/1.1\r\n") && copy.ends_with("\r\n\r\nsome text"),
            "{copy}"
        );
        let lower = copy.to_ascii_lowercase();
        for expected in ["host: localhost", "x-seen: yes", "x-forwarded-for: 127.0.0.1", "content-length: 9"]
        {
            assert!(lower.contains(expected), "{expected}: {copy}");
        }
        let empty = curl(&served.gateway, &served.certificates, &[version], "/c");
        assert!(empty.starts_with("GET /new/c "), "{empty}");
        assert!(next(&copies).starts_with("GET /new/c "));
    }
    served.gateway.wait_for_metric("quadrille_requests_mirrored_total", &["answered"], |count| count == 4.0);
    assert_eq!(served.gateway.metric("quadrille_requests_total", &["5xx"]), 0.0);
}

#[test]
fn a_large_body_is_copied_whole() {
    let (shadow, copies) = recording_server();
    let served = Served::new("[shadow]", shadow);
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), "0123456789".repeat(20_000)).expect("writing");
    let body = format!("@{}", file.path().display());
    let answer = curl(&served.gateway, &served.certificates, &["--data-binary", &body], "/");
    let copy = next(&copies);
    let body = |text: &str| text.split_once("\r\n\r\n").expect("a header").1.to_owned();
    assert_eq!(body(&copy).len(), 200_000);
    assert!(body(&copy) == body(&answer));
}

#[test]
fn a_mirror_that_is_down_or_does_not_respond_has_no_effect() {
    let absent = SocketAddr::from(([127, 0, 0, 1], ports::free()));
    let served = Served::new("[shadow]", absent);
    assert_eq!(curl_status(&served.gateway, &served.certificates, &[], "/"), "200");
    served.gateway.wait_for_metric("quadrille_requests_mirrored_total", &["failed"], |count| count == 1.0);

    let silent = std::net::TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = silent.local_addr().expect("an address");
    let served = Served::new("[shadow]", address);
    assert_eq!(curl_status(&served.gateway, &served.certificates, &["--data-binary", "x"], "/"), "200");
    assert_eq!(served.mirrored("failed"), 0.0, "the mirror was waited for");
    let served = Served::giving_up_after("300ms", "[shadow]", address);
    assert_eq!(curl_status(&served.gateway, &served.certificates, &["--data-binary", "x"], "/"), "200");
    served.gateway.wait_for_metric("quadrille_requests_mirrored_total", &["failed"], |count| count == 1.0);
}

#[test]
fn a_share_of_the_requests_is_copied() {
    let (shadow, copies) = recording_server();
    let served = Served::new("[{upstream: shadow, percent: 25}]", shadow);
    // The random share is between an eighth and two fifths: nine standard deviations from the mean.
    let answers = curl(&served.gateway, &served.certificates, &["--http1.1"], "/[1-1000]");
    assert_eq!(answers.matches("GET /new/").count(), 1000);
    served
        .gateway
        .wait_for_metric("quadrille_requests_mirrored_total", &["answered"], |count| count >= 125.0);
    let answered = || served.mirrored("answered");
    throughout(Duration::from_secs(1), "too many are copied", || answered() <= 400.0);
    let copied = copies.try_iter().count();
    assert!((125..=400).contains(&copied), "{copied} of 1000");
}
