//! Route features beyond host and path: conditions, weights, redirects, limits, retries. Also listeners that share a
//! port.

use crate::support::{
    Certificates, Configuration, Gateway, Nginx, curl, curl_status, document, eventually, listener, succeed,
};
use std::{
    io::{self, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::Command,
    thread,
    time::Duration,
};

/// Servers that echo requests, and some that misbehave. `$NAME` is the upstream's name.
const SERVER: &str = r#"
location / { return 200 "$NAME $request_uri host=$http_host proto=$http_x_forwarded_proto"; }
location /broken { return 503 "$NAME broken"; }
"#;

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    _servers: Vec<Nginx>,
    _file: Configuration,
}

impl Site {
    /// Starts a gateway with these routes, whose upstreams are `one` and `two`.
    fn new(routes: &str) -> Self {
        let certificates = Certificates::new();
        let servers: Vec<_> =
            ["one", "two"].iter().map(|name| Nginx::new(&SERVER.replace("$NAME", name))).collect();
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let upstreams = format!(
            "one: {{servers: ['{}'], retries: 0}}, two: {{servers: ['{}'], retries: 0}}, \
             none: {{servers: ['127.0.0.1:1'], retries: 0}}, both: {{servers: ['127.0.0.1:1', '{}'], retries: 0}}",
            servers[0].address(),
            servers[1].address(),
            servers[0].address()
        );
        let file =
            Configuration::new(&document(&[listener(&pair, &format!("routes: [{routes}]"))], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, gateway, _servers: servers, _file: file }
    }

    fn get(&self, arguments: &[&str], path: &str) -> String {
        curl(&self.gateway, &self.certificates, arguments, path)
    }

    fn status(&self, path: &str) -> String {
        curl_status(&self.gateway, &self.certificates, &[], path)
    }
}

#[test]
fn paths_and_headers_choose() {
    let site = Site::new(
        "{upstream: one}, {path: /a, upstream: two, rewrite: /b}, {path_exact: /a/x, respond: exact},
         {path_regex: '/v[0-9]+/.*', respond: regex}, {path: /a, headers: [{name: X-Canary, exact: yes, ignore_case: on}], respond: canary},
         {path: /v1/x, respond: prefix}",
    );
    for client in ["--http1.1", "--http2"] {
        for (path, header, expected) in [
            ("/", "a: b", "one / "),
            ("/a?q=1", "a: b", "two /b?q=1 "),
            ("/a/b", "a: b", "two /b/b "),
            ("/ab", "a: b", "one /ab "),
            ("/a/x?q", "a: b", "exact"),
            ("/v1/x", "a: b", "regex"),
            ("/v1", "a: b", "one /v1 "),
            ("/a/y", "X-CANARY: YES", "canary"),
            ("/a/y", "x-canary: yes!", "two /b/y "),
        ] {
            let answer = site.get(&[client, "--header", header], path);
            assert!(answer.starts_with(expected), "{client} {path} {header}: {answer}");
        }
    }
}

#[test]
fn shares_are_kept() {
    let site = Site::new("{split: [{upstream: one, weight: 3}, {upstream: two}]}");
    // The random share is between five and seven eighths: nine standard deviations from the mean.
    let answers = site.get(&[], "/[1-1000]");
    let ones = answers.matches("one /").count();
    assert_eq!(ones + answers.matches("two /").count(), 1000);
    assert!((625..=875).contains(&ones), "{ones} of 1000");
}

#[test]
fn clients_are_sent_elsewhere() {
    let site = Site::new(
        "{redirect: {port: 1, status: 308}}, {path: /h, redirect: {host: o.example, path: /n, strip_query: on}}, \
         {path: /s, redirect: {scheme: http, status: 302}}",
    );
    let port = site.gateway.port();
    for (path, status, to) in [
        ("/x?q=1", "308", "https://localhost:1/x?q=1".to_owned()),
        ("/h/x?q", "301", "https://o.example/n".to_owned()),
        ("/s?q", "302", format!("http://localhost:{port}/s?q")),
    ] {
        let write = "%{http_code} %{redirect_url}";
        let arguments = ["--output", "/dev/null", "--write-out", write];
        assert_eq!(site.get(&arguments, path), format!("{status} {to}"));
    }
}

#[test]
fn failures_are_tried_again_as_the_route_says() {
    let site = Site::new(
        "{path: /plain, upstream: both}, {path: /again, upstream: both, retry: {on: [connect-failure]}, rewrite: /},
         {path: /broken, upstream: one, retry: {on: [503], retries: 2}},
         {path: /mixed, split: [{upstream: none}], retry: {on: [5xx], retries: 1}}",
    );
    let plain = (0..4).filter(|_| site.status("/plain") == "502").count();
    assert!(plain > 0, "without a policy, a dead server is noticed");
    for _ in 0..4 {
        assert_eq!(site.status("/again"), "200");
    }
    // The last response is forwarded.
    let answer = site.get(&["--no-fail", "--request", "GET"], "/broken");
    assert_eq!(answer, "one broken");
    assert_eq!(site.status("/mixed"), "502");
}

#[test]
fn an_answer_that_takes_too_long_is_given_up() {
    let certificates = Certificates::new();
    let upstreams = format!("slow: {{servers: ['{}']}}", dribbling());
    let routes =
        "routes: [{path: /slow, upstream: slow, timeout: 1s}, {path: /late, upstream: slow, timeout: 300ms}]";
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    assert_eq!(curl_status(&gateway, &certificates, &[], "/late"), "504");
    let port = gateway.port();
    for client in ["--http1.1", "--http2"] {
        // On a busy machine, even the start of the response may be late.
        eventually("no response begins", || {
            let mut command = Command::new("curl");
            command.args(["--silent", "--insecure", "--max-time", "600", "--output", "/dev/null", client]);
            command.args(["--write-out", "%{http_code} %{time_total}"]);
            let output = command.arg(format!("https://localhost:{port}/slow")).output().expect("curl");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            let (status, time) = text.split_once(' ').expect("two figures");
            let time: f64 = time.parse().expect("seconds");
            assert!(time >= 0.9, "{client}: {text}");
            if status == "504" {
                return false;
            }
            // The response is endless: the gateway truncated it, not curl's own time limit.
            let code = output.status.code();
            assert!(status == "200" && ![Some(0), Some(28)].contains(&code), "{client}: {code:?} {text}");
            true
        });
    }
}

/// Starts a server that does not respond to `/late`, and sends other responses slowly.
fn dribbling() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let dribble = |mut stream: TcpStream| -> io::Result<()> {
        let mut request = [0; 4096];
        let length = stream.read(&mut request)?;
        if request[..length].starts_with(b"GET /late ") {
            return stream.read(&mut request).map(drop);
        }
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
        loop {
            stream.write_all(b"x")?;
            thread::sleep(Duration::from_millis(20));
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || dribble(stream));
        }
    });
    address
}

#[test]
fn listeners_share_a_port_and_serve_plain_text() {
    let certificates = Certificates::new();
    let (one, two) =
        (certificates.ecdsa("P-256", &["one.test"]), certificates.ecdsa("P-256", &["x.two.test"]));
    let address = SocketAddr::from(([127, 0, 0, 1], crate::support::ports::free()));
    let at = |pair, keys: &str| crate::support::configuration::listener_at(address, pair, keys);
    let plain = "{address: '127.0.0.1:0', tls: off, routes: [{redirect: https}, {path: /hi, respond: hi}]}";
    let text = document(
        &[
            at(&one, "match: {server_names: [one.test]}, respond: one"),
            at(&two, "match: {server_names: ['*.test']}, respond: two, tls: {min: 1.3, max: 1.3}"),
            format!("{{address: '{address}', match: {{transport: plain}}, tls: off, respond: plain}}"),
            plain.to_owned(),
        ],
        "",
    );
    let file = Configuration::new(&text);
    let gateway = Gateway::with_config(&file.path(), 2);
    let get = |name: &str, port: u16, more: &[&str], url: &str| {
        let resolve = format!("{name}:{port}:127.0.0.1");
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--max-time", "600", "--resolve", &resolve, "--cacert"]);
        succeed(command.arg(certificates.ca()).args(more).arg(url))
    };
    let port = address.port();
    assert_eq!(get("one.test", port, &["--tls-max", "1.2"], &format!("https://one.test:{port}/")), "one");
    assert_eq!(get("x.two.test", port, &[], &format!("https://x.two.test:{port}/")), "two");
    assert_eq!(get("x.two.test", port, &[], &format!("http://x.two.test:{port}/")), "plain");
    assert_eq!(get("a", port, &["--http2-prior-knowledge"], &format!("http://a:{port}/")), "plain");
    let refused =
        |arguments: &[&str]| !Command::new("curl").args(arguments).output().expect("curl").status.success();
    let resolve = format!("x.two.test:{port}:127.0.0.1");
    assert!(refused(&[
        "--silent",
        "-k",
        "--tls-max",
        "1.2",
        "--resolve",
        &resolve,
        &format!("https://x.two.test:{port}/")
    ]));
    assert!(refused(&["--silent", "-k", &format!("https://localhost:{port}/")]), "no listener matches");
    let plain = gateway.address(1).port();
    assert_eq!(get("h", plain, &[], &format!("http://h:{plain}/hi")), "hi");
    let sent = get(
        "h",
        plain,
        &["--output", "/dev/null", "--write-out", "%{redirect_url}"],
        &format!("http://h:{plain}/a?b"),
    );
    assert_eq!(sent, format!("https://h:{plain}/a?b"));
}
