//! Rate limits. The rates are so low that no token is added while a test runs.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, Pair, Response, curl_status, document,
    echo_server, eventually, http3::Sending, listener,
};

const CLIENT: &str = "127.0.1.5";
const NEIGHBOUR: &str = "127.0.1.6";
const STRANGER: &str = "127.0.2.5";

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
        let file = Configuration::new(&document(&[listener(&pair, keys)], &web));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, pair, web, file, gateway }
    }

    /// Starts the site with other keys of its listener.
    fn reload(&self, keys: &str, reloads: f64) {
        self.file.replace(&document(&[listener(&self.pair, keys)], &self.web));
        self.gateway.signal("HUP");
        self.gateway.wait_for_metric("quadrille_reloads_total", &["ok"], |count| count == reloads);
    }

    fn status(&self, arguments: &[&str], path: &str) -> String {
        curl_status(&self.gateway, &self.certificates, arguments, path)
    }

    /// Returns the statuses of this many sequential requests from this address.
    fn statuses(&self, from: &str, path: &str, requests: usize) -> Vec<String> {
        (0..requests).map(|_| self.status(&["--interface", from], path)).collect()
    }

    fn get(&self, path: &str, headers: &str) -> Response {
        Connector::new(&self.certificates).get(self.gateway.address(0), path, headers)
    }

    fn refused(&self, limit: &str) -> f64 {
        self.gateway.metric("quadrille_rate_limited_total", &[limit, "result=\"refused\""])
    }
}

#[test]
fn a_network_of_clients_has_its_own() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 3/240h}]");
    assert_eq!(site.statuses(CLIENT, "/", 2), ["200", "200"]);
    assert_eq!(site.statuses(NEIGHBOUR, "/", 2), ["200", "429"], "an address in the same /24");
    assert_eq!(site.statuses(CLIENT, "/", 1), ["429"]);
    assert_eq!(site.statuses(STRANGER, "/", 1), ["200"]);
    assert_eq!(site.refused("by=\"client\""), 2.0);
    let addresses = Site::new("respond: ok, rate_limits: [{rate: 1/240h, ipv4_prefix: 32}]");
    assert_eq!(addresses.statuses(CLIENT, "/", 2), ["200", "429"]);
    assert_eq!(addresses.statuses(NEIGHBOUR, "/", 2), ["200", "429"]);
}

/// Servers use the first or the last of several lines of a header.
#[test]
fn another_line_of_a_header_does_not_evade_its_limit() {
    let site = Site::new("http3: on, respond: ok, rate_limits: [{rate: 3/240h, by: 'header X-Key'}]");
    let status = |headers: &str| site.get("/", headers).status;
    assert_eq!(status("X-Key: mine\r\n"), 200);
    assert_eq!(status("X-Key: mine\r\nX-Key: one\r\n"), 200);
    assert_eq!(status("X-Key: two\r\nX-Key: between\r\nX-Key: mine\r\n"), 200);
    for evading in ["X-Key: mine\r\nX-Key: three\r\n", "X-Key: four\r\nX-Key: mine\r\n", "X-Key: mine\r\n"] {
        assert_eq!(status(evading), 429, "{evading}");
    }
    let http2 = site.status(&["--http2", "-H", "X-Key: mine", "-H", "X-Key: five"], "/");
    assert_eq!(http2, "429");
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    let headers = [("x-key", "mine"), ("x-key", "six")];
    assert_eq!(
        http3.exchange(&Sending { method: "GET", path: "/", headers: &headers, body: b"" }).status,
        429
    );
    assert_eq!(status("X-Key: seven\r\n"), 200);
}

/// HTTP/1.1, HTTP/2 and HTTP/3 share one limit.
#[test]
fn all_http_versions_share_the_limit() {
    let site = Site::new("http3: on, respond: ok, rate_limits: [{rate: 3/240h}]");
    assert_eq!(site.status(&["--http1.1"], "/"), "200");
    assert_eq!(site.status(&["--http2"], "/"), "200");
    let mut http3 = Http3Client::new(&site.certificates).connect(site.gateway.address(0));
    assert_eq!(http3.get("/").status, 200);
    let refused = http3.exchange(&Sending { method: "GET", path: "/", headers: &[], body: b"" });
    assert_eq!((refused.status, refused.header("retry-after").is_some()), (429, true));
    for version in ["--http1.1", "--http2"] {
        assert_eq!(site.status(&[version], "/"), "429");
    }
    assert_eq!(site.refused(&format!("limit=\"{}\"", "127.0.0.1:0")), 3.0);
}

#[test]
fn the_response_has_retry_after_and_an_acceptable_form() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 1/240h, by: all}]");
    assert_eq!(site.get("/", "").status, 200);
    for (accept, content_type, says) in [
        (
            "application/json",
            "application/json",
            "{\"error\":\"Too many requests; try again later.\",\"status\":429}",
        ),
        ("text/html", "text/html; charset=utf-8", "<h1>429 Too Many Requests</h1>"),
        ("*/*", "text/plain; charset=utf-8", "Too many requests; try again later.\n"),
    ] {
        let refused = site.get("/", &format!("Accept: {accept}\r\n"));
        assert_eq!(refused.status, 429);
        assert_eq!(refused.header("content-type"), Some(content_type));
        let length = refused.body.len().to_string();
        assert_eq!(refused.header("content-length"), Some(&*length), "once, and right");
        assert!(refused.text().contains(says), "{}", refused.text());
        let seconds = refused.header("retry-after").and_then(|value| value.parse().ok());
        assert!(seconds.is_some_and(|seconds: u64| (860_000..=864_000).contains(&seconds)), "{refused:?}");
    }
}

#[test]
fn used_tokens_are_refilled() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 1/s, burst: 1, by: all}]");
    assert_eq!(site.get("/", "").status, 200);
    let connector = Connector::new(&site.certificates);
    let mut client = connector.http(site.gateway.address(0)).expect("a connection");
    let mut statuses = || {
        let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        client.send(request.repeat(2).as_bytes()).expect("requests");
        [(); 2].map(|()| client.response().expect("a response").status)
    };
    // Of two concurrent requests, the second exceeds the limit, unless a busy machine takes a second for it.
    eventually("nothing is refused", || statuses()[1] == 429);
    eventually("nothing is refilled", || statuses()[0] == 200);
}

#[test]
fn by_the_value_of_a_header() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 2/240h, by: header X-Api-Key}]");
    let status = |headers: &str| site.get("/", headers).status;
    assert_eq!([status("X-Api-Key: a\r\n"), status("x-api-key: a\r\n")], [200, 200]);
    assert_eq!([status("X-Api-Key: a\r\n"), status("X-Api-Key: b\r\n")], [429, 200]);
    assert_eq!(
        [status(""), status(""), status("")],
        [200, 200, 429],
        "requests without the header share a limit"
    );
    let both = "X-Api-Key: a\r\nX-Api-Key: b\r\n";
    assert_eq!([status(both), status(both), status(both)], [429; 3], "each line counts");
    assert_eq!(site.refused("by=\"header\""), 5.0);
}

#[test]
fn routes_have_limits_besides_those_of_the_listener() {
    let site = Site::new(
        "rate_limits: [{rate: 5/240h, by: all}], routes: [
            {path: /login, upstream: web, rate_limits: [{rate: 1/240h, by: all}, {rate: 1/240h}],
             response_headers: [{set: X-Frame-Options, value: DENY}]},
            {path: /login, headers: [{name: x-vip, present: on}], respond: vip, rate_limits: [{rate: 1/240h, by: all}]},
            {host: other.example, path: /login, respond: other, rate_limits: [{rate: 1/240h, by: all}]},
            {path: /, respond: ok}]",
    );
    let status = |path: &str, headers: &str| site.get(path, headers).status;
    assert_eq!(status("/login", ""), 200);
    let refused = site.get("/login", "");
    assert_eq!((refused.status, refused.header("x-frame-options")), (429, Some("DENY")));
    assert_eq!(status("/login", "X-Vip: 1\r\n"), 200, "each route has its own limit");
    assert_eq!(status("/", ""), 200);
    assert_eq!([status("/", ""), status("/", "")], [200, 429], "requests rejected by a route are counted");
    assert_eq!(site.refused("limit=\"127.0.0.1:0 /login\""), 1.0);
    assert_eq!(site.refused("limit=\"127.0.0.1:0\""), 1.0);
}

#[test]
fn behind_trusted_proxies_the_client_counts() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 1/240h}], trusted_proxies: [127.0.0.1]");
    let status = |client: &str| site.get("/", &format!("X-Forwarded-For: {client}\r\n")).status;
    assert_eq!([status("192.0.2.1"), status("192.0.2.2")], [200, 429]);
    assert_eq!([status("198.51.100.1"), status("203.0.113.9, 198.51.100.2")], [200, 429]);
    assert_eq!([status("2001:db8:0:1::1"), status("2001:db8:0:99::1")], [200, 429], "of one /56");
    assert_eq!(status("2001:db8:0:100::1"), 200);
}

/// Clients rejected by `clients` do not consume the limit.
#[test]
fn only_accepted_clients_are_counted() {
    let site =
        Site::new("respond: ok, clients: {deny: [127.0.2.0/24]}, rate_limits: [{rate: 1/240h, by: all}]");
    assert_eq!(site.statuses(STRANGER, "/", 3), ["403", "403", "403"]);
    assert_eq!(site.statuses(CLIENT, "/", 2), ["200", "429"]);
}

/// An unchanged limit keeps its state, wherever it is configured; a changed one starts again.
#[test]
fn a_reload_keeps_the_limits_state() {
    let site = Site::new("respond: ok, rate_limits: [{rate: 2/240h, by: all}]");
    assert_eq!([site.get("/", "").status, site.get("/", "").status], [200, 200]);
    site.reload(
        "hsts: on, routes: [{path: /x, respond: x}], respond: new, rate_limits: [{rate: 2/240h, by: all}]",
        1.0,
    );
    assert_eq!(site.get("/", "").status, 429);
    site.reload("respond: ok, rate_limits: [{rate: 3/240h, by: all}]", 2.0);
    assert_eq!(site.get("/", "").status, 200);
    let routes = |more: &str| {
        format!("routes: [{more} {{path: /a, respond: a, rate_limits: [{{rate: 1/240h}}]}}], respond: ok")
    };
    site.reload(&routes(""), 3.0);
    assert_eq!([site.get("/a", "").status, site.get("/a", "").status], [200, 429]);
    site.reload(&routes("{path: /b, respond: b},"), 4.0);
    assert_eq!(site.get("/a", "").status, 429);
}

#[test]
fn the_access_log_says_so() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let log = certificates.path("access.log");
    let text = document(&[listener(&pair, "respond: ok, rate_limits: [{rate: 1/240h}]")], "");
    let file = Configuration::new(&format!("{text}access_log: {}\n", log.display()));
    let gateway = Gateway::with_config(&file.path(), 1);
    for status in ["200", "429"] {
        assert_eq!(curl_status(&gateway, &certificates, &[], "/"), status);
    }
    let lines = || std::fs::read_to_string(&log).unwrap_or_default();
    eventually("the request is not in the log", || lines().lines().count() == 2);
    let refused = lines().lines().last().expect("a line").to_owned();
    assert!(refused.contains("status=429") && refused.contains("error=\"rate limited\""), "{refused}");
}
