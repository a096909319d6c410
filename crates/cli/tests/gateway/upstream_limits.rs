//! What bounds the requests to an upstream, and which of its servers are left out for what became of them.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, SlowProxy, curl, curl_status, document,
    eventually, listener,
};
use std::{
    thread,
    time::{Duration, Instant},
};

/// A gateway in front of these servers, whose upstream has these further keys.
struct Setting {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Setting {
    fn new(servers: &[String], keys: &str) -> Self {
        let certificates = Certificates::new();
        let listed: Vec<_> = servers.iter().map(|server| format!("\"{server}\"")).collect();
        let upstreams = format!("web: {{servers: [{}], {keys}}}", listed.join(", "));
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn status(&self) -> String {
        curl_status(&self.gateway, &self.certificates, &[], "/")
    }

    /// The answers' bodies, one after the other.
    fn bodies(&self, requests: usize) -> String {
        curl(&self.gateway, &self.certificates, &["--http1.1"], &format!("/[1-{requests}]"))
    }

    /// The statuses of so many requests at a time, sorted.
    fn at_a_time(&self, clients: usize) -> Vec<u16> {
        let address = self.gateway.address(0);
        let client = || {
            let connector = Connector::new(&self.certificates);
            connector.http(address).expect("a connection").get("/").expect("an answer").status
        };
        let mut statuses: Vec<u16> = thread::scope(|scope| {
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        statuses.sort_unstable();
        statuses
    }
}

fn says(text: &str) -> Nginx {
    Nginx::new(&format!("location / {{ return 200 {text}; }}"))
}

fn fails(status: u16) -> Nginx {
    Nginx::new(&format!("location / {{ return {status} x; }}"))
}

#[test]
fn a_server_whose_answers_are_errors_is_left_out_and_comes_back() {
    let (good, bad) = (says("g"), fails(500));
    let servers = [&good, &bad].map(|server| server.address().to_string());
    let setting = Setting::new(&servers, "outlier_detection: {errors: 3, ejection: 2s, most: 50}");
    // Three of the first six answers are the server's that fails, and none after that.
    let statuses: Vec<_> = (0..6).map(|_| setting.status()).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "500").count(), 3, "{statuses:?}");
    assert_eq!(setting.bodies(20), "g".repeat(20));
    let log = setting.gateway.log();
    assert!(log.contains("the server fails, and is left out"), "{log}");
    eventually("the server does not come back", || setting.status() == "500");
}

#[test]
fn failures_count_in_a_row() {
    let server = Nginx::new("location /bad { return 500 x; } location / { return 200 g; }");
    let setting = Setting::new(
        &[server.address().to_string()],
        "outlier_detection: {errors: 3, ejection: 60s, most: 100}",
    );
    let statuses = |paths: &[&str]| -> Vec<String> {
        paths.iter().map(|path| curl_status(&setting.gateway, &setting.certificates, &[], path)).collect()
    };
    let two_and_a_success = ["/bad", "/bad", "/"];
    assert_eq!(statuses(&two_and_a_success), statuses(&two_and_a_success));
    assert_eq!(statuses(&["/bad", "/bad", "/bad", "/"]), ["500", "500", "500", "503"]);
}

/// A server that has not got a request cannot answer it.
#[test]
fn clients_that_send_slowly_are_not_the_servers_fault() {
    let settings = "location /slow { proxy_pass http://127.0.0.1:1; } location / { return 200 g; }";
    for (listens, protocol) in [("", "http1"), ("http2", "http2")] {
        let server = Nginx::listening(listens, settings);
        let certificates = Certificates::new();
        let upstreams = format!(
            "web: {{servers: [\"{}\"], protocol: {protocol}, outlier_detection: {{errors: 2, ejection: 60s, most: 100}}}}",
            server.address()
        );
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let routes = "routes: [{upstream: web, timeout: 1s}]";
        let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        for _ in 0..3 {
            let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
            client
                .send(b"PUT /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx")
                .expect("sending");
            assert_eq!(client.response().expect("an answer").status, 408, "{protocol}: {}", gateway.log());
        }
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "200", "{protocol}: {}", gateway.log());
    }
}

#[test]
fn the_last_servers_stay_however_they_answer() {
    let servers = [fails(502), fails(502), fails(502)];
    let addresses = servers.each_ref().map(|server| server.address().to_string());
    let setting = Setting::new(&addresses, "retries: 0, outlier_detection: {errors: 1, most: 30}");
    for _ in 0..10 {
        assert_eq!(setting.status(), "502", "one of three is left out, and the others answer as they can");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_left_out() {
    let mut dead = says("d");
    let good = says("g");
    let servers = [&good, &dead].map(|server| server.address().to_string());
    dead.stop();
    let setting =
        Setting::new(&servers, "retries: 0, outlier_detection: {errors: 2, ejection: 60s, most: 50}");
    let statuses: Vec<_> = (0..4).map(|_| setting.status()).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "502").count(), 2, "{statuses:?}");
    assert_eq!(setting.bodies(20), "g".repeat(20));
}

#[test]
fn requests_beyond_the_limit_are_answered_at_once() {
    let server = says("g");
    let slow = SlowProxy::before(server.address());
    slow.delay(Duration::from_millis(700));
    let setting = Setting::new(&[slow.address.to_string()], "limits: {requests: 3}");
    assert_eq!(setting.at_a_time(8), [200, 200, 200, 503, 503, 503, 503, 503]);
    slow.delay(Duration::ZERO);
    assert_eq!(setting.at_a_time(1), [200], "when the others have ended");
}

#[test]
fn requests_wait_for_a_connection_and_no_more_than_may() {
    let server = says("g");
    let slow = SlowProxy::before(server.address());
    slow.delay(Duration::from_millis(500));
    let setting = Setting::new(&[slow.address.to_string()], "limits: {connections: 2, pending: 3}");
    let began = Instant::now();
    assert_eq!(setting.at_a_time(8), [200, 200, 200, 200, 200, 503, 503, 503]);
    assert!(began.elapsed() >= Duration::from_millis(1500), "five, two at a time");
}

#[test]
fn a_failure_is_not_tried_again_while_too_many_are() {
    let mut dead = says("d");
    let good = says("g");
    let servers = [&good, &dead].map(|server| server.address().to_string());
    dead.stop();
    for (limit, failures) in [("retries: 0", 10), ("retries: 1", 0)] {
        let setting = Setting::new(&servers, &format!("limits: {{{limit}}}"));
        let failed = (0..20).filter(|_| setting.status() == "502").count();
        assert_eq!(failed, failures, "{limit}");
    }
}
