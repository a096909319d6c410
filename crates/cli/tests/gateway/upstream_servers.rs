//! Servers of upstreams: backups, health checks by response, slow starts, and servers that are taken out of service.

use crate::support::{
    Certificates, Configuration, Gateway, Nginx, curl, curl_status, document, eventually, listener, output,
};
use serde_json::Value;
use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{Arc, Mutex},
    thread,
};

/// A server that responds with its name, and to health checks as a test says.
struct Server {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    name: &'static str,
    /// Status and body of responses to health checks.
    health: (u16, &'static str),
    /// Status of other responses.
    status: u16,
    /// Heads of the last health checks.
    checks: VecDeque<String>,
}

impl Server {
    fn new(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let state = State { name, health: (200, ""), status: 200, checks: VecDeque::new() };
        let (address, state) = (listener.local_addr().expect("an address"), Arc::new(Mutex::new(state)));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for tcp in listener.incoming().map_while(Result::ok) {
                let state = Arc::clone(&shared);
                thread::spawn(move || respond_to_all(&tcp, &state));
            }
        });
        Self { address, state }
    }

    fn set_health(&self, status: u16, body: &'static str) {
        self.state.lock().expect("no panic").health = (status, body);
    }

    fn set_status(&self, status: u16) {
        self.state.lock().expect("no panic").status = status;
    }

    /// Returns the head of a health check after this call.
    fn next_check(&self) -> String {
        self.state.lock().expect("no panic").checks.clear();
        let mut check = None;
        eventually("no health check arrives", || {
            check = self.state.lock().expect("no panic").checks.back().cloned();
            check.is_some()
        });
        check.expect("a check")
    }
}

fn respond_to_all(mut tcp: &TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut lines = BufReader::new(tcp).lines().map_while(Result::ok);
    loop {
        let head: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
        let target = head.first()?.split(' ').nth(1)?.to_owned();
        let mut state = state.lock().expect("no panic");
        let (status, body) = match target.as_str() {
            "/health" => {
                state.checks.push_back(head.join("\n"));
                state.checks.truncate(100);
                state.health
            }
            _ => (state.status, state.name),
        };
        drop(state);
        let length = body.len();
        write!(tcp, "HTTP/1.1 {status} S\r\nContent-Length: {length}\r\n\r\n{body}").ok()?;
    }
}

/// A gateway in front of an upstream `web`.
struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    /// Starts a gateway whose upstream has these keys.
    fn new(keys: &str) -> Self {
        Self::with_admin(keys, "admin: 127.0.0.1:0")
    }

    fn with_admin(keys: &str, admin: &str) -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let text = document(&[listener(&pair, "upstream: web")], &format!("web: {{{keys}}}"));
        let text = text.replace("admin: 127.0.0.1:0", admin).replace("threads: 2", "threads: 1");
        assert!(text.contains(admin));
        let file = Configuration::new(&text);
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    fn get(&self) -> String {
        curl(&self.gateway, &self.certificates, &["--no-fail"], "/")
    }

    fn status(&self) -> String {
        curl_status(&self.gateway, &self.certificates, &[], "/")
    }

    /// Returns the names of the servers that respond to 200 requests.
    fn names(&self) -> String {
        curl(&self.gateway, &self.certificates, &["--http1.1"], "/[1-200]")
    }

    /// Returns what `/status` says about a server.
    fn server(&self, server: &Server) -> Value {
        let (_, text) =
            output(Command::new("curl").args(["-sS", "--max-time", "600", &self.gateway.admin("/status")]));
        let status: Value = serde_json::from_str(&text).expect("JSON");
        let servers = status["upstreams"][0]["servers"].as_array().expect("servers").clone();
        let address = server.address.to_string();
        servers.into_iter().find(|server| server["address"] == *address).expect("the server")
    }

    /// Sends a request to the admin address; returns the status.
    fn post(&self, arguments: &[&str], page: &str) -> String {
        let head = ["-sS", "--max-time", "600", "--output", "/dev/null", "--write-out", "%{http_code}"];
        output(Command::new("curl").args(head).args(arguments).arg(self.gateway.admin(page))).1
    }
}

#[test]
fn backups_serve_while_no_other_server_is_healthy() {
    let (first, backup) = (Server::new("first"), Server::new("backup"));
    let site = Site::new(&format!(
        "servers: [\"{}\", {{address: \"{}\", priority: 1}}], health: {{path: /health, interval: 50ms, unhealthy: 1}}",
        first.address, backup.address
    ));
    assert_eq!(site.names(), "first".repeat(200));
    assert_eq!((&site.server(&first)["priority"], &site.server(&backup)["priority"]), (&0.into(), &1.into()));
    first.set_health(503, "");
    eventually("the backup is not used", || site.get() == "backup");
    assert_eq!(site.names(), "backup".repeat(200));
    first.set_health(200, "");
    eventually("the backup is still used", || site.get() == "first");
    assert_eq!(site.names(), "first".repeat(200));
}

#[test]
fn a_health_check_has_the_configured_request_and_response() {
    let server = Server::new("a");
    let health =
        "path: /health, method: OPTIONS, host: 'shop.example:81', statuses: [200-204, 401], body: ready";
    let site = Site::new(&format!(
        "servers: [\"{}\"], health: {{{health}, interval: 50ms, unhealthy: 1}}",
        server.address
    ));
    let check = server.next_check().to_ascii_lowercase();
    assert!(check.starts_with("options /health http/1.1\n"), "{check}");
    assert!(check.contains("\nhost: shop.example:81"), "{check}");
    for (status, body, is_healthy) in [
        (200, "not yet", false),
        (200, "ready.", true),
        (204, "", false),
        (401, "I am ready", true),
        (205, "ready", false),
        (201, "ready", true),
    ] {
        server.set_health(status, body);
        let expected = if is_healthy { "200" } else { "503" };
        eventually("the server is not what its check says", || site.status() == expected);
    }
    let regex = r#"path: /health, body_regex: '(?s).*"status": *"up".*'"#;
    let site = Site::new(&format!(
        "servers: [\"{}\"], health: {{{regex}, interval: 50ms, unhealthy: 1}}",
        server.address
    ));
    server.set_health(200, "{\n \"status\": \"up\"\n}");
    eventually("the body matches", || site.status() == "200");
    server.set_health(200, "{\"status\": \"down\"}");
    eventually("the body does not match", || site.status() == "503");
}

#[test]
fn a_health_check_has_its_own_tls_name() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["app.example", "health.example"]);
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {chain}; ssl_certificate_key {key};
             location /health {{ if ($ssl_server_name != health.example) {{ return 503; }} return 200; }}
             location / {{ return 200 $ssl_server_name; }}"
        ),
    );
    let gateway = |health: &str| {
        let front = certificates.ecdsa("P-256", &["localhost"]);
        let tls = format!("tls: {{server_name: app.example, ca: {}}}", certificates.ca().display());
        let health = format!("health: {{path: /health, interval: 50ms, unhealthy: 1{health}}}");
        let upstreams = format!("web: {{servers: [\"{}\"], {tls}, {health}}}", nginx.address());
        let file = Configuration::new(&document(&[listener(&front, "upstream: web")], &upstreams));
        (Gateway::with_config(&file.path(), 1), file)
    };
    let (named, _first) = gateway(", server_name: health.example");
    let (other, _second) = gateway("");
    eventually("the name of requests is used", || curl_status(&other, &certificates, &[], "/") == "503");
    assert_eq!(curl(&named, &certificates, &[], "/"), "app.example", "requests have their own name");
    // The certificate is verified for it.
    let (refused, _third) = gateway(", server_name: other.example");
    eventually("the name is not verified", || curl_status(&refused, &certificates, &[], "/") == "503");
}

#[test]
fn a_recovered_server_gets_its_share_bit_by_bit() {
    let (steady, slow) = (Server::new("a"), Server::new("b"));
    let site = Site::new(&format!(
        "servers: [\"{}\", \"{}\"], slow_start: 24h, health: {{path: /health, interval: 50ms, unhealthy: 1}}",
        steady.address, slow.address
    ));
    let share = |names: &str| names.matches('b').count();
    assert_eq!(share(&site.names()), 100, "at the start, every server has its share");
    slow.set_health(503, "");
    eventually("the server is healthy", || share(&site.names()) == 0);
    slow.set_health(200, "");
    let mut seen = 0;
    eventually("the server gets no requests", || {
        seen = share(&site.names());
        seen > 0
    });
    // A tenth of its weight.
    seen += share(&site.names()) + share(&site.names());
    assert!(seen < 150, "{seen} of 600");
}

#[test]
fn a_server_is_taken_out_of_service_and_back_into_it() {
    let (one, other) = (Server::new("a"), Server::new("b"));
    let servers = format!("servers: [\"{}\", \"{}\"]", one.address, other.address);
    let site = Site::with_admin(&servers, "admin: {address: 127.0.0.1:0, actions: on}");
    let page = |action: &str, server: &Server| format!("/{action}?upstream=web&server={}", server.address);
    assert_eq!(site.server(&one)["draining"], false);
    assert_eq!(site.post(&["--request", "POST"], &page("drain", &one)), "200");
    assert_eq!(site.names(), "b".repeat(200));
    assert_eq!(site.server(&one)["draining"], true);
    let draining = |site: &Site| site.gateway.metrics().contains("quadrille_upstream_server_draining{");
    assert!(draining(&site));
    assert_eq!(site.post(&["--request", "POST"], &page("drain", &other)), "200");
    assert_eq!(site.status(), "503");
    for server in [&one, &other] {
        assert_eq!(site.post(&["--request", "POST"], &page("undrain", server)), "200");
    }
    assert_eq!(site.names().matches('a').count(), 100);
    assert!(!draining(&site));

    assert_eq!(site.post(&[], &page("drain", &one)), "405");
    assert_eq!(
        site.post(&["--request", "POST", "--header", "Origin: http://a.example"], &page("drain", &one)),
        "403"
    );
    for (query, status) in
        [("upstream=web&server=127.0.0.1:1", "404"), ("upstream=no&server=x", "404"), ("", "400")]
    {
        assert_eq!(site.post(&["--request", "POST"], &format!("/drain?{query}")), status, "{query}");
    }
    assert_eq!(site.names().matches('a').count(), 100, "none of these has an effect");
    let closed = Site::new(&servers);
    assert_eq!(
        closed.post(&["--request", "POST"], &page("drain", &one)),
        "403",
        "actions are off by default"
    );
}

#[test]
fn an_ejected_server_is_shown_as_such() {
    let (good, bad) = (Server::new("a"), Server::new("b"));
    let site = Site::new(&format!(
        "servers: [\"{}\", \"{}\"], outlier_detection: {{errors: 3, ejection: 600s, most: 50}}",
        good.address, bad.address
    ));
    assert_eq!((&site.server(&bad)["ejected"], &site.server(&bad)["healthy"]), (&false.into(), &Value::Null));
    bad.set_status(500);
    eventually("the server is not ejected", || {
        site.status();
        site.server(&bad)["ejected"] == true
    });
    let ejected = |server: &Server| {
        let labels = [format!("server=\"{}\"", server.address)];
        site.gateway.metric("quadrille_upstream_server_ejected", &[labels[0].as_str()])
    };
    assert_eq!((ejected(&good), ejected(&bad)), (0.0, 1.0));
}
