//! Effects of keys that no other test shows. `crates/config/src/file/tests/effects.rs` names a test for each key.

use crate::support::{
    Certificates, Configuration, EchoSite, Gateway, Nginx, TokenKey, accept_blocking,
    configuration::listener_at, curl, curl_status, document, eventually, jwks, listener, output, ports,
    seconds_from_now, throughout,
};
use serde_json::json;
use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

/// A server that accepts connections and sends nothing.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    (listener, address)
}

/// `lame_duck`.
#[test]
fn connections_are_accepted_while_readiness_is_off() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(&[listener(&pair, "respond: ok")], "").replace("lame_duck: 0s", "lame_duck: 600s");
    let file = Configuration::new(&text);
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let ready = |gateway: &Gateway| {
        let arguments = ["-s", "-o", "/dev/null", "-w", "%{http_code}", &gateway.admin("/ready")];
        output(Command::new("curl").args(arguments)).1
    };
    assert_eq!(ready(&gateway), "200");
    gateway.signal("TERM");
    eventually("it stays ready", || ready(&gateway) == "503");
    assert_eq!(curl_status(&gateway, &certificates, &[], "/"), "200");
    gateway.signal("TERM");
    assert!(gateway.wait(crate::support::PATIENCE).is_some(), "a second signal does not end it");
}

/// `match.application_protocols`.
#[test]
fn a_listener_is_selected_by_its_protocols() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let address = format!("127.0.0.1:{}", ports::free());
    let listeners = [
        listener_at(&address, &pair, "match: {application_protocols: [h2]}, respond: new"),
        listener_at(&address, &pair, "respond: old"),
    ];
    let file = Configuration::new(&document(&listeners, ""));
    let gateway = Gateway::with_config(&file.path(), 1);
    for (version, expected) in [("--http2", "new"), ("--http1.1", "old"), ("--no-alpn", "old")] {
        assert_eq!(curl(&gateway, &certificates, &[version], "/"), expected, "{version}");
    }
}

/// `retry.per_try_timeout`: without it, the requests would wait longer than curl does.
#[test]
fn an_attempt_has_a_time_limit() {
    let (_held, silent) = silent_server();
    let good = Nginx::new("return 200 good;");
    let retry = "retry: {on: [gateway-error], retries: 1, per_try_timeout: 200ms}";
    let site = EchoSite::with(
        &format!(
            "routes: [{{path: /both, upstream: both, {retry}}}, {{path: /one, upstream: one, {retry}}}]"
        ),
        &format!(
            ", both: {{servers: [\"{silent}\", \"{}\"], timeouts: {{read: 600s}}}}, one: {{servers: [\"{silent}\"], timeouts: {{read: 600s}}}}",
            good.address()
        ),
    );
    assert_eq!(curl(&site.gateway, &site.certificates, &[], "/both/[1-6]"), "good".repeat(6));
    assert_eq!(site.statuses("GET", "/one", &[]), ["504"; 3]);
}

/// `sticky`: `query`, and `path` of a cookie.
#[test]
fn a_parameter_of_the_query_selects_the_server() {
    let servers: Vec<_> =
        (0..4).map(|name| Nginx::new(&format!("location / {{ return 200 {name}; }}"))).collect();
    let listed: Vec<_> = servers.iter().map(|server| format!("\"{}\"", server.address())).collect();
    let site = EchoSite::with(
        "routes: [{path: /q, upstream: many, sticky: [{query: session}]},
          {path: /shop, upstream: many, sticky: [{cookie: server, lifetime: 1h, path: /shop}]}]",
        &format!(", many: {{servers: [{}], balance: hash}}", listed.join(", ")),
    );
    let of =
        |session: usize| curl(&site.gateway, &site.certificates, &[], &format!("/q/[1-5]?session={session}"));
    // It is practically impossible that all of them have the same server by chance.
    let sessions: Vec<_> = (0..40).map(of).collect();
    for names in &sessions {
        assert_eq!(*names, names[..1].repeat(5), "the same server each time");
    }
    assert!(sessions.iter().any(|names| *names != sessions[0]), "{sessions:?}");
    let head = curl(&site.gateway, &site.certificates, &["--include"], "/shop/cart").to_lowercase();
    assert!(head.contains("\r\nset-cookie: server=") && head.contains("path=/shop"), "{head}");
}

/// `fault.delay_percent`: one request of a million is delayed.
#[test]
fn a_share_of_the_requests_is_delayed() {
    let site = EchoSite::new(
        "routes: [{path: /seldom, respond: ok, fault: {delay: 600s, delay_percent: 0.0001}},
          {path: /always, respond: ok, fault: {delay: 600s, delay_percent: 100}}]",
    );
    assert_eq!(site.statuses("GET", "/seldom", &[]), ["200"; 3]);
    let port = site.gateway.port();
    let url = format!("https://localhost:{port}/always");
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "1", "--insecure", &url]);
    assert!(!output(&mut command).0, "a response without the delay");
}

/// `rate_limits[].ipv6_prefix`.
#[test]
fn networks_of_ipv6_have_a_limit_each() {
    let site = EchoSite::new(
        "respond: ok, trusted_proxies: [127.0.0.1], rate_limits: [{rate: 1/240h, ipv6_prefix: 64}]",
    );
    let status = |client: &str| {
        let header = format!("X-Forwarded-For: {client}");
        curl_status(&site.gateway, &site.certificates, &["-H", &header], "/")
    };
    assert_eq!([status("2001:db8:0:1::1"), status("2001:db8:0:1::2")], ["200", "429"]);
    assert_eq!(status("2001:db8:0:2::1"), "200", "another /64 of the same /56");
}

/// `jwt`: `keys_url` with `upstream`, `required`, `forward` and `leeway`.
#[test]
fn tokens_may_be_absent_forwarded_and_late() {
    let key = TokenKey::p256("one");
    let issuer = Nginx::new(&format!(
        "location = /jwks {{ default_type application/json; return 200 '{}'; }}",
        jwks(&[&key])
    ));
    let site = EchoSite::with(
        "upstream: web, jwt: {issuer: me, keys_url: 'http://id.example/jwks', upstream: id, required: off,
          forward: on, leeway: 1h}",
        &format!(", id: {{servers: [\"{}\"]}}", issuer.address()),
    );
    let token = |seconds: i64| {
        let expiry = seconds_from_now(seconds);
        format!("Bearer {}", key.token("ES256", &json!({ "iss": "me", "sub": "ann", "exp": expiry })))
    };
    let statuses = |token: &str| site.statuses("GET", "/", &[("authorization", token)]);
    assert_eq!(site.statuses("GET", "/", &[]), ["200"; 3], "a token is not required");
    assert_eq!(statuses("Bearer x.y.z"), ["401"; 3], "an invalid one is refused");
    assert_eq!(statuses(&token(60)), ["200"; 3]);
    assert_eq!(statuses(&token(-1800)), ["200"; 3], "within the leeway");
    assert_eq!(statuses(&token(-5400)), ["401"; 3], "beyond it");
    let header = format!("authorization: {}", token(60));
    let echo = curl(&site.gateway, &site.certificates, &["-H", &header], "/").to_lowercase();
    assert!(echo.contains("\r\nauthorization: bearer "), "{echo}");
}

/// `authorization.timeout`: without it, requests would wait for five seconds, and with it longer than curl does.
#[test]
fn an_authorization_server_has_a_time_limit() {
    let (_held, silent) = silent_server();
    let upstreams = format!(", authz: {{servers: [\"{silent}\"], retries: 0, timeouts: {{read: 600s}}}}");
    let site = EchoSite::with(
        "routes: [{path: /soon, upstream: web, authorization: {upstream: authz, timeout: 50ms}},
          {path: /late, upstream: web, authorization: {upstream: authz, timeout: 600s}}]",
        &upstreams,
    );
    assert_eq!(site.statuses("GET", "/soon", &[]), ["503"; 3]);
    let url = format!("https://localhost:{}/late", site.gateway.port());
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "7", "--insecure", &url]);
    assert!(!output(&mut command).0, "a response after the default time");
}

/// A server that fails health checks until it is repaired, and counts those since.
#[derive(Clone, Default)]
struct Repaired(Arc<AtomicUsize>);

impl Repaired {
    fn serve(&self) -> SocketAddr {
        let this = self.clone();
        accept_blocking(move |tcp| this.respond(tcp))
    }

    fn respond(&self, mut tcp: TcpStream) -> Option<()> {
        let mut reader = BufReader::new(tcp.try_clone().ok()?);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        }
        // 0 means not repaired.
        let count =
            self.0.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |count| (count > 0).then_some(count + 1));
        let status = if count.is_ok() { "200 OK" } else { "500 Broken" };
        let response = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        tcp.write_all(response.as_bytes()).ok()
    }
}

/// `health`: `healthy` and `timeout`.
#[test]
fn a_server_must_succeed_several_times_in_time() {
    let server = Repaired::default();
    let address = server.serve();
    let (_held, silent) = silent_server();
    let site = EchoSite::with(
        "upstream: web",
        &format!(
            ", several: {{servers: [\"{address}\"], health: {{path: /, interval: 50ms, timeout: 10s, unhealthy: 1, healthy: 5}}}},
             patient: {{servers: [\"{silent}\"], health: {{path: /, interval: 50ms, timeout: 600s, unhealthy: 1}}}},
             impatient: {{servers: [\"{silent}\"], health: {{path: /, interval: 50ms, timeout: 50ms, unhealthy: 1}}}}"
        ),
    );
    let up = |upstream: &str| {
        site.gateway.metric("quadrille_upstream_server_up", &[&format!("upstream=\"{upstream}\"")])
    };
    eventually("a broken server is healthy", || up("several") == 0.0);
    server.0.store(1, Ordering::SeqCst);
    eventually("a repaired server is unhealthy", || up("several") == 1.0);
    assert!(server.0.load(Ordering::SeqCst) > 5, "after {} successes", server.0.load(Ordering::SeqCst) - 1);
    eventually("a silent server is healthy after the timeout", || up("impatient") == 0.0);
    throughout(std::time::Duration::from_millis(1500), "unhealthy before the timeout", || {
        up("patient") == 1.0
    });
}

/// `outlier_detection.gateway_errors`.
#[test]
fn gateway_errors_alone_eject_a_server() {
    let server = Nginx::new(
        "location /bad { return 500 x; } location /gone { return 503 x; } location / { return 200 g; }",
    );
    let detection = "outlier_detection: {errors: off, gateway_errors: 3, ejection: 600s, most: 100}";
    let site = EchoSite::with(
        "upstream: app",
        &format!(", app: {{servers: [\"{}\"], {detection}}}", server.address()),
    );
    let status = |path: &str| curl_status(&site.gateway, &site.certificates, &[], path);
    for _ in 0..6 {
        assert_eq!(status("/bad"), "500");
    }
    assert_eq!(status("/"), "200", "500 does not count");
    for _ in 0..3 {
        assert_eq!(status("/gone"), "503");
    }
    eventually("it is not ejected", || status("/") == "503");
}
