//! Access to a listener by client address.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Pair, curl, curl_status, document, echo_server,
    eventually, listener,
};

const NEAR: &str = "127.0.1.5";
const FAR: &str = "127.0.2.5";

struct Site {
    certificates: Certificates,
    pair: Pair,
    web: String,
    file: Configuration,
    gateway: Gateway,
}

impl Site {
    fn new(keys: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
        let file = Configuration::new(&text(&pair, &web, keys));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, pair, web, file, gateway }
    }

    /// Returns the status of the response to a client at this address that sends forwarding headers.
    fn status(&self, version: &str, from: &str, forwarded_for: &str) -> String {
        let header = format!("X-Forwarded-For: {forwarded_for}");
        curl_status(&self.gateway, &self.certificates, &[version, "--interface", from, "-H", &header], "/")
    }
}

/// Starts a listener with these keys in front of an upstream that echoes requests.
fn text(pair: &Pair, web: &str, keys: &str) -> String {
    document(&[listener(pair, &format!("upstream: web, {keys}"))], web)
}

#[test]
fn others_are_answered_with_403() {
    let site = Site::new("clients: {allow: [127.0.0.0/8], deny: [127.0.2.0/24]}");
    for version in ["--http1.1", "--http2"] {
        assert_eq!(
            site.status(version, NEAR, FAR),
            "200",
            "forwarding headers of untrusted clients are ignored"
        );
        assert_eq!(site.status(version, FAR, NEAR), "403");
    }
    let text = curl(&site.gateway, &site.certificates, &["--no-fail", "--interface", FAR], "/");
    assert_eq!(text, "This client address is not allowed here.\n");
    assert_eq!(site.gateway.metric("quadrille_access_denied_total", &["request"]), 3.0);
}

#[test]
fn behind_trusted_proxies_the_client_counts() {
    let site = Site::new("clients: {allow: [192.0.2.0/24]}, trusted_proxies: [127.0.1.0/24]");
    assert_eq!(site.status("--http1.1", NEAR, "192.0.2.7"), "200");
    assert_eq!(site.status("--http1.1", NEAR, "192.0.2.7, 198.51.100.1"), "403");
    assert_eq!(site.status("--http1.1", FAR, "192.0.2.7"), "403");
}

/// The current rules apply to open connections.
#[test]
fn a_reload_tightens_at_once() {
    let site = Site::new("mode: http");
    let connector = Connector::new(&site.certificates);
    let mut open = connector.http(site.gateway.address(0)).expect("a connection");
    assert_eq!(open.get("/").expect("a response").status, 200);
    site.file.replace(&text(&site.pair, &site.web, "clients: {allow: [10.0.0.0/8]}"));
    site.gateway.signal("HUP");
    site.gateway.wait_for_metric("quadrille_reloads_total", &["ok"], |count| count == 1.0);
    assert_eq!(open.get("/").expect("a response").status, 403);
}

#[test]
fn in_tcp_mode_their_connections_are_closed() {
    let site = Site::new("mode: tcp, clients: {deny: [127.0.0.1]}");
    let connector = Connector::new(&site.certificates);
    assert_eq!(site.status("--http1.1", NEAR, NEAR), "200");
    assert!(connector.http(site.gateway.address(0)).expect("a handshake").is_closed());
    site.gateway.wait_for_metric("quadrille_access_denied_total", &["connection"], |count| count == 1.0);
}

#[test]
fn a_client_has_so_many_connections() {
    let site = Site::new("limits: {connections_per_client: 2}");
    let connector = Connector::new(&site.certificates);
    let open = || connector.http(site.gateway.address(0));
    let mut held: Vec<_> = (0..2).map(|_| open().expect("a connection")).collect();
    for client in &mut held {
        assert_eq!(client.get("/").expect("a response").status, 200);
    }
    assert!(open().is_err(), "a third connection");
    site.gateway.wait_for_metric("quadrille_handshake_failures_total", &["too_many_connections"], |count| {
        count >= 1.0
    });
    assert_eq!(site.status("--http1.1", NEAR, FAR), "200", "another client");
    held.pop();
    eventually("the place of a closed connection is not free", || open().is_ok());
    assert_eq!(held[0].get("/").expect("a response").status, 200);
}

/// A route's `clients` precede its password: a denied client need not send one.
#[test]
fn a_route_denies_a_client_before_it_requires_a_password() {
    const USERS: &str = "ada:$2y$05$DdtPXFFCcdaikKOAhelah.ig4957ecLHk7CcmHEhDzxwEVL6SC1Ci";
    let site = Site::new(&format!(
        "basic_auth: {{users: '{USERS}'}}, routes: [{{path: /, clients: {{deny: [127.0.2.0/24]}}, upstream: web, headers: [{{name: x-forwarded-for}}]}}]"
    ));
    for version in ["--http1.1", "--http2"] {
        assert_eq!(site.status(version, NEAR, FAR), "401");
        assert_eq!(site.status(version, FAR, NEAR), "403");
    }
}
