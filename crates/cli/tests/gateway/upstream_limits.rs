//! Upstream request limits and outlier detection.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually,
    listener, output, ports,
};
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// Starts a gateway in front of these servers, whose upstream has these further keys.
struct Setting {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Setting {
    fn new(servers: &[String], keys: &str) -> Self {
        let listed: Vec<_> = servers.iter().map(|server| format!("\"{server}\"")).collect();
        Self::with_servers(&listed.join(", "), keys)
    }

    fn with_servers(listed: &str, keys: &str) -> Self {
        Self::with_listener("upstream: web", &format!("web: {{servers: [{listed}], {keys}}}"))
    }

    fn with_listener(keys: &str, upstreams: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let text = document(&[listener(&pair, keys)], upstreams);
        // On one event loop, a request has ended for the upstream when its client receives the next response.
        let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn status(&self) -> String {
        curl_status(&self.gateway, &self.certificates, &[], "/")
    }

    /// Returns the bodies of sequential responses.
    fn bodies(&self, requests: usize) -> String {
        curl(&self.gateway, &self.certificates, &["--http1.1"], &format!("/[1-{requests}]"))
    }

    /// Returns the sorted statuses of this many concurrent requests. The server responds once it holds `held` of
    /// them and `refused` of them were rejected.
    fn at_a_time(&self, clients: usize, held: usize, refused: usize, server: &HeldServer) -> Vec<u16> {
        let address = self.gateway.address(0);
        let client = || {
            let connector = Connector::new(&self.certificates);
            connector.http(address).expect("a connection").get("/").expect("a response").status
        };
        let mut statuses: Vec<u16> = thread::scope(|scope| {
            let clients: Vec<_> = (0..clients).map(|_| scope.spawn(client)).collect();
            eventually("too few are refused", || {
                clients.iter().filter(|client| client.is_finished()).count() >= refused
            });
            server.wait_for(held);
            server.release();
            clients.into_iter().map(|client| client.join().expect("a client")).collect()
        });
        statuses.sort_unstable();
        statuses
    }
}

/// A server that responds to requests once it is released, and counts concurrent ones.
struct HeldServer {
    address: SocketAddr,
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    state: Mutex<Requests>,
    changed: Condvar,
}

#[derive(Default)]
struct Requests {
    is_released: bool,
    now: usize,
    most: usize,
}

impl HeldServer {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
        let (address, held) = (listener.local_addr().expect("an address"), Arc::new(Held::default()));
        let shared = Arc::clone(&held);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let held = Arc::clone(&shared);
                thread::spawn(move || held.answer_all(&tcp));
            }
        });
        Self { address, held }
    }

    /// Waits until this many requests have arrived and have no response.
    fn wait_for(&self, requests: usize) {
        eventually("too few requests reach the server", || {
            self.held.state.lock().expect("no panic").now == requests
        });
    }

    fn release(&self) {
        self.held.state.lock().expect("no panic").is_released = true;
        self.held.changed.notify_all();
    }

    /// Returns the maximum number of concurrent requests.
    fn most(&self) -> usize {
        self.held.state.lock().expect("no panic").most
    }
}

impl Held {
    fn answer_all(&self, mut tcp: &TcpStream) -> Option<()> {
        let mut lines = BufReader::new(tcp).lines().map_while(Result::ok);
        loop {
            lines.by_ref().find(String::is_empty)?;
            let mut state = self.state.lock().expect("no panic");
            state.now += 1;
            state.most = state.most.max(state.now);
            let mut state = self.changed.wait_while(state, |state| !state.is_released).expect("no panic");
            state.now -= 1;
            drop(state);
            tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\ng").ok()?;
        }
    }
}

/// Returns the number of requests that wait, as `/status` has it.
fn waiting(gateway: &Gateway) -> u64 {
    let page = ["-sS", "--max-time", "600", &gateway.admin("/status")];
    let status: serde_json::Value =
        serde_json::from_str(&output(Command::new("curl").args(page)).1).expect("JSON");
    status["upstreams"][0]["waiting"].as_u64().expect("a number")
}

#[test]
fn requests_wait_for_a_server_below_its_maximum() {
    let servers = [HeldServer::start(), HeldServer::start()];
    let listed =
        servers.each_ref().map(|server| format!("{{address: \"{}\", max_connections: 1}}", server.address));
    let setting = Setting::with_servers(&listed.join(", "), "");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let get = || {
            let connector = Connector::new(&setting.certificates);
            connector
                .http(setting.gateway.address(0))
                .expect("a connection")
                .get("/")
                .expect("a response")
                .status
        };
        let clients: Vec<_> = (0..5).map(|_| scope.spawn(get)).collect();
        eventually("too few requests wait", || waiting(&setting.gateway) == 3);
        servers.iter().for_each(|server| server.wait_for(1));
        servers.iter().for_each(HeldServer::release);
        clients.into_iter().map(|client| client.join().expect("a client")).collect()
    });
    assert_eq!((statuses, servers.map(|server| server.most())), (vec![200; 5], [1, 1]));
    assert_eq!(waiting(&setting.gateway), 0);
}

#[test]
fn so_many_requests_wait_for_a_server_and_only_so_long() {
    for (limits, refused) in [("{pending: 0}", 2), ("{pending: 1}", 1), ("{pending_timeout: 50ms}", 2)] {
        let server = HeldServer::start();
        let listed = format!("{{address: \"{}\", max_connections: 1}}", server.address);
        let setting = Setting::with_servers(&listed, &format!("limits: {limits}"));
        let statuses = setting.at_a_time(3, 1, refused, &server);
        let expected = [vec![200; 3 - refused], vec![503; refused]].concat();
        assert_eq!(statuses, expected, "{limits}");
        assert_eq!(server.most(), 1);
    }
}

#[test]
fn a_client_has_so_many_requests_at_a_route() {
    let server = HeldServer::start();
    let routes =
        "routes: [{path: /, limits: {requests_per_client: 2}, upstream: web}, {path: /open, respond: ok}]";
    let upstreams = format!("web: {{servers: [\"{}\"]}}", server.address);
    let setting = Setting::with_listener(routes, &upstreams);
    assert_eq!(setting.at_a_time(4, 2, 2, &server), [200, 200, 429, 429]);
    assert_eq!(setting.status(), "200", "their places are free again");

    let server = HeldServer::start();
    let upstreams = format!("web: {{servers: [\"{}\"]}}", server.address);
    let setting = Setting::with_listener(routes, &upstreams);
    thread::scope(|scope| {
        let get = |from: &'static str| {
            let setting = &setting;
            scope.spawn(move || {
                curl_status(&setting.gateway, &setting.certificates, &["--interface", from], "/")
            })
        };
        let held = [get("127.0.1.5"), get("127.0.1.5"), get("127.0.2.5")];
        server.wait_for(3);
        let third = curl_status(&setting.gateway, &setting.certificates, &["--interface", "127.0.1.5"], "/");
        assert_eq!(third, "429", "another client does not count");
        let open =
            curl_status(&setting.gateway, &setting.certificates, &["--interface", "127.0.1.5"], "/open");
        assert_eq!(open, "200", "another route does not count");
        server.release();
        assert_eq!(held.map(|client| client.join().expect("a client")), ["200"; 3]);
    });
}

#[test]
fn requests_wait_only_so_long_for_a_connection() {
    let server = HeldServer::start();
    let limits = "limits: {connections: 1, pending_timeout: 50ms}";
    let setting = Setting::new(&[server.address.to_string()], limits);
    assert_eq!(setting.at_a_time(2, 1, 1, &server), [200, 503]);
}

fn says(text: &str) -> Nginx {
    Nginx::new(&format!("location / {{ return 200 {text}; }}"))
}

fn fails(status: u16) -> Nginx {
    Nginx::new(&format!("location / {{ return {status} x; }}"))
}

#[test]
fn a_server_whose_responses_are_errors_is_ejected_and_restored() {
    let (good, bad) = (says("g"), fails(500));
    let servers = [&good, &bad].map(|server| server.address().to_string());
    let ejecting = |time: &str| format!("outlier_detection: {{errors: 3, ejection: {time}, most: 50}}");
    let mut setting = Setting::new(&servers, &ejecting("600s"));
    // Three of the first six responses are from the failing server, and none after that.
    let statuses: Vec<_> = (0..6).map(|_| setting.status()).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "500").count(), 3, "{statuses:?}");
    assert_eq!(setting.bodies(20), "g".repeat(20));
    setting.gateway.wait_for_log("failing endpoint ejected");

    let mut setting = Setting::new(&servers, &ejecting("500ms"));
    for _ in 0..6 {
        setting.status();
    }
    setting.gateway.wait_for_log("failing endpoint ejected");
    eventually("the server is not restored", || setting.status() == "500");
}

#[test]
fn failures_count_in_a_row() {
    let server = Nginx::new("location /bad { return 500 x; } location / { return 200 g; }");
    let setting = Setting::new(
        &[server.address().to_string()],
        "outlier_detection: {errors: 3, ejection: 600s, most: 100}",
    );
    let statuses = |paths: &[&str]| -> Vec<String> {
        paths.iter().map(|path| curl_status(&setting.gateway, &setting.certificates, &[], path)).collect()
    };
    let two_and_a_success = ["/bad", "/bad", "/"];
    assert_eq!(statuses(&two_and_a_success), statuses(&two_and_a_success));
    assert_eq!(statuses(&["/bad", "/bad", "/bad", "/"]), ["500", "500", "500", "503"]);
}

/// A server that has not received the whole request is not blamed for the missing response.
#[test]
fn clients_that_send_slowly_are_not_the_servers_fault() {
    let settings = "location /slow { proxy_pass http://127.0.0.1:1; } location / { return 200 g; }";
    for (listens, protocol) in [("", "http1"), ("http2", "http2")] {
        let server = Nginx::listening(listens, settings);
        let certificates = Certificates::new();
        let upstreams = format!(
            "web: {{servers: [\"{}\"], protocol: {protocol}, outlier_detection: {{errors: 2, ejection: 600s, most: 100}}}}",
            server.address()
        );
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let routes = "routes: [{upstream: web}, {path: /slow, upstream: web, timeout: 300ms}]";
        let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        for _ in 0..3 {
            let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
            client
                .send(b"PUT /slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nx")
                .expect("sending");
            assert_eq!(client.response().expect("a response").status, 408, "{protocol}: {}", gateway.log());
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
        assert_eq!(setting.status(), "502", "one of three is ejected, and the others keep responding");
    }
}

#[test]
fn a_server_that_cannot_be_reached_is_left_out() {
    let mut dead = says("d");
    let good = says("g");
    let servers = [&good, &dead].map(|server| server.address().to_string());
    dead.stop();
    let setting =
        Setting::new(&servers, "retries: 0, outlier_detection: {errors: 2, ejection: 600s, most: 50}");
    let statuses: Vec<_> = (0..4).map(|_| setting.status()).collect();
    assert_eq!(statuses.iter().filter(|status| *status == "502").count(), 2, "{statuses:?}");
    assert_eq!(setting.bodies(20), "g".repeat(20));
}

#[test]
fn requests_beyond_the_limit_are_answered_at_once() {
    let server = HeldServer::start();
    let setting = Setting::new(&[server.address.to_string()], "limits: {requests: 3}");
    assert_eq!(setting.at_a_time(8, 3, 5, &server), [200, 200, 200, 503, 503, 503, 503, 503]);
    assert_eq!(server.most(), 3);
    assert_eq!(setting.at_a_time(1, 0, 0, &server), [200], "after the other requests have ended");
}

#[test]
fn requests_wait_for_a_connection_and_no_more_than_may() {
    let server = HeldServer::start();
    let setting = Setting::new(&[server.address.to_string()], "limits: {connections: 2, pending: 3}");
    assert_eq!(setting.at_a_time(8, 2, 3, &server), [200, 200, 200, 200, 200, 503, 503, 503]);
    assert_eq!(server.most(), 2, "five requests, at most two concurrently");
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
