//! Header fields that every response has: `Date`, HSTS, and the listener's `response_headers`.

use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, curl, document, http3::Sending, listener, ports,
};
use std::process::Command;

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _file: Configuration,
}

impl Site {
    /// Starts a site with a route for each status that a local response can have.
    fn new() -> Self {
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let user =
            crate::support::succeed(Command::new("htpasswd").args(["-nbB", "-C", "5", "ada", "lovelace"]));
        let users = certificates.path("users");
        std::fs::write(&users, user.trim().to_owned() + "\n").expect("a file");
        let keys = format!(
            "http3: on, hsts: on, response_headers: [{{set: X-Own, value: listener}}], limits: {{url: 1KiB}},
             routes: [
                {{path: /ok, respond: ok, response_headers: [{{set: X-Route, value: ok}}]}},
                {{path: /moved, redirect: {{path: /ok}}}},
                {{path: /login, respond: ok, basic_auth: {{users: {}}}}},
                {{path: /small, upstream: gone, limits: {{body: 1}}}},
                {{path: /often, respond: ok, rate_limits: [{{rate: 1/240h}}]}},
                {{path: /gone, upstream: gone, response_headers: [{{set: X-Route, value: gone}}]}}]",
            users.display()
        );
        let gone = format!("gone: {{servers: [\"127.0.0.1:{}\"]}}", ports::free());
        let file = Configuration::new(&document(&[listener(&pair, &keys)], &gone));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _file: file }
    }

    /// Returns the headers of the response over each version, in lower case, the status line first.
    fn heads(&self, method: &str, path: &str, body: &str) -> [String; 3] {
        let mut arguments = vec!["--no-fail", "--path-as-is", "-X", method, "-D", "-", "-o", "/dev/null"];
        if !body.is_empty() {
            arguments.extend(["--data", body]);
        }
        let over = |version| {
            let arguments = [&[version], &arguments[..]].concat();
            curl(&self.gateway, &self.certificates, &arguments, path).to_lowercase()
        };
        let mut http3 = Http3Client::new(&self.certificates).connect(self.gateway.address(0));
        let length = body.len().to_string();
        let headers = [("content-length", length.as_str())];
        let headers = if body.is_empty() { &headers[..0] } else { &headers[..] };
        let response = http3.exchange(&Sending { method, path, headers, body: body.as_bytes() });
        let fields = response.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
        let head = format!("http/3 {}\n{}", response.status, fields.collect::<String>());
        [over("--http1.1"), over("--http2"), head.to_lowercase()]
    }
}

#[test]
fn every_local_response_has_a_date_hsts_and_the_listeners_headers() {
    let site = Site::new();
    let long = format!("/{}", "a".repeat(2000));
    // The limit allows one request.
    site.heads("GET", "/often", "");
    for (status, method, path, body) in [
        ("200", "GET", "/ok", ""),
        ("301", "GET", "/moved", ""),
        ("400", "GET", "/a%00b", ""),
        ("401", "GET", "/login", ""),
        ("404", "GET", "/unknown", ""),
        ("413", "POST", "/small", "too long"),
        ("414", "GET", long.as_str(), ""),
        ("429", "GET", "/often", ""),
        ("502", "GET", "/gone", ""),
    ] {
        for head in site.heads(method, path, body) {
            let line = head.lines().next().unwrap_or_default();
            assert!(line.contains(&format!(" {status}")), "{path}: {head}");
            for field in ["date: ", "strict-transport-security: max-age=", "x-own: listener"] {
                assert_eq!(head.matches(&format!("\n{field}")).count(), 1, "{status}, {field}: {head}");
            }
        }
    }
}

#[test]
fn a_routes_headers_are_on_its_errors() {
    let site = Site::new();
    for (path, value) in [("/ok", "ok"), ("/gone", "gone")] {
        for head in site.heads("GET", path, "") {
            assert!(head.contains(&format!("\nx-route: {value}")), "{path}: {head}");
        }
    }
}
