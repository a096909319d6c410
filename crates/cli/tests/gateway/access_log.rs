//! Formats, rotation and syslog of the access log, and routes that it leaves out.

use crate::support::{
    Certificates, Configuration, Gateway, PATIENCE, curl, curl_status, document, eventually, listener,
    output, quadrille,
};
use serde_json::Value;
use std::{
    fs,
    net::UdpSocket,
    os::unix::net::UnixDatagram,
    path::{Path, PathBuf},
};

struct Site {
    certificates: Certificates,
    gateway: Gateway,
    log: PathBuf,
    _configuration: Configuration,
}

impl Site {
    /// Starts a gateway with these routes, and these keys of `access_log` besides `to`.
    fn new(routes: &str, keys: &str) -> Self {
        let certificates = Certificates::new();
        let log = certificates.path("access.log");
        let text = text(&certificates, routes, &format!("{{to: {}, {keys}}}", log.display()));
        let configuration = Configuration::new(&text);
        let gateway = Gateway::with_config(&configuration.path(), 1);
        Self { certificates, gateway, log, _configuration: configuration }
    }

    fn get(&self, arguments: &[&str], path: &str) -> String {
        curl(&self.gateway, &self.certificates, arguments, path)
    }

    /// Waits until the log has this many lines, and returns them.
    fn lines(&self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        eventually("the access log has fewer lines", || {
            lines = read(&self.log);
            lines.len() >= count
        });
        lines
    }
}

fn read(log: &Path) -> Vec<String> {
    fs::read_to_string(log).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn text(certificates: &Certificates, routes: &str, access_log: &str) -> String {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let document = document(&[listener(&pair, routes)], "app: {servers: ['127.0.0.1:1'], retries: 0}");
    format!("{document}access_log: {access_log}\n")
}

#[test]
fn combined_is_nginxs_and_values_are_escaped() {
    let site = Site::new("respond: ok", "format: combined");
    let headers = ["--http1.1", "--header", "Referer: a\"b\\c", "--user-agent", "evil \u{e9}\t\" 1"];
    site.get(&headers, "/a%20b?q=1");
    let lines = site.lines(1);
    let (before, rest) = lines[0].split_once(" [").expect("a time");
    let (time, after) = rest.split_once("] ").expect("a time");
    assert_eq!(before, "127.0.0.1 - -");
    assert!(time.len() == 26 && time.ends_with(" +0000") && time.as_bytes()[2] == b'/', "{time}");
    let expected = r#""GET /a%20b?q=1 HTTP/1.1" 200 2 "a\x22b\x5Cc" "evil \xC3\xA9\x09\x22 1""#;
    assert_eq!(after, expected);
}

#[test]
fn a_text_has_the_variables_of_request_connection_and_upstream() {
    let format = "$request_method $host $uri $args $scheme $server_protocol $status $upstream_name $upstream_addr \
                  $ssl_protocol $ssl_cipher $ssl_server_name $ssl_session_reused $http_x_a $$ $server_port \
                  $request_time $handshake_time $pid $error";
    let site =
        Site::new("routes: [{path: /app, upstream: app}, {respond: ok}]", &format!("format: '{format}'"));
    let status = curl_status(
        &site.gateway,
        &site.certificates,
        &["--http2", "--tls-max", "1.2", "--header", "X-A: b"],
        "/app",
    );
    assert_eq!(status, "502");
    let lines = site.lines(1);
    let words: Vec<_> = lines[0].split(' ').collect();
    let port = site.gateway.port().to_string();
    assert!(words[1].starts_with("localhost"), "{lines:?}");
    let expected =
        ["GET", words[1], "/app", "-", "https", "HTTP/2.0", "502", "app", "127.0.0.1:1", "TLSv1.2"];
    assert_eq!(words[..10], expected, "{lines:?}");
    assert_eq!(words[11..16], ["localhost", ".", "b", "$", port.as_str()], "{lines:?}");
    for time in &words[16..18] {
        assert!(time.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 3), "{lines:?}");
    }
    assert_eq!(words[18], site.gateway.pid().to_string());
}

#[test]
fn json_has_the_chosen_members() {
    let members = "{client: $remote_addr, status: $status, seconds: $request_time, user: $remote_user, \
                   agent: $http_user_agent, what: '$request_method $uri', \"a\\\"b\": $scheme}";
    let site = Site::new("respond: ok", &format!("format: {members}"));
    site.get(&["--user-agent", "a\"\u{1F680}"], "/x?secret=1");
    let lines = site.lines(1);
    let line: Value = serde_json::from_str(&lines[0]).expect("JSON");
    assert_eq!(line["client"], "127.0.0.1");
    assert_eq!(line["status"], 200);
    assert!(line["seconds"].is_f64());
    assert_eq!(line["user"], Value::Null);
    assert_eq!(line["agent"], "a\"\u{1F680}");
    assert_eq!(line["what"], "GET /x");
    assert_eq!(line["a\"b"], "https");
    assert!(!lines[0].contains("secret"), "{lines:?}");
}

#[test]
fn routes_are_left_out_or_sampled() {
    let routes = "routes: [{path: /health, respond: ok, access_log: off}, \
                  {path: /some, respond: ok, access_log: 50%}, {respond: ok, access_log: on}]";
    let site = Site::new(routes, "format: $uri");
    for path in ["/health", "/some", "/other"] {
        let urls = format!("{path}?[1-200]");
        site.get(&["--output", "/dev/null"], &urls);
    }
    site.get(&[], "/last");
    let mut lines = Vec::new();
    eventually("the last request is not logged", || {
        lines = read(&site.log);
        lines.iter().any(|line| line == "/last")
    });
    let count = |path: &str| lines.iter().filter(|line| *line == path).count();
    assert_eq!((count("/health"), count("/other")), (0, 200));
    // A share of a half is within these bounds with a probability of 1 - 10^-12.
    assert!((50..=150).contains(&count("/some")), "{}", count("/some"));
}

#[test]
fn a_full_file_is_rotated() {
    let site = Site::new("respond: ok", "format: '$uri $http_x_long', max_size: 4KiB, keep: 2");
    let long = format!("X-Long: {}", "a".repeat(1000));
    for number in 0..12 {
        site.get(&["--header", &long], &format!("/{number}"));
    }
    let numbered = |number: usize| PathBuf::from(format!("{}.{number}", site.log.display()));
    eventually("no third file", || {
        read(&site.log).iter().any(|line| line.starts_with("/11 ")) && numbered(2).exists()
    });
    assert!(!numbered(3).exists());
    let sizes =
        [site.log.clone(), numbered(1), numbered(2)].map(|file| fs::metadata(file).expect("a file").len());
    assert!(sizes.iter().all(|size| (1..=4096).contains(size)), "{sizes:?}");
    let all: Vec<_> =
        [numbered(2), numbered(1), site.log.clone()].iter().flat_map(|file| read(file)).collect();
    let numbers: Vec<usize> =
        all.iter().filter_map(|line| line[1..].split_once(' ')?.0.parse().ok()).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] + 1 == pair[1]) && numbers.last() == Some(&11),
        "{numbers:?}"
    );
}

#[test]
fn syslog_receives_messages_of_rfc_5424() {
    let certificates = Certificates::new();
    let udp = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let path = certificates.path("log.sock");
    let unix = UnixDatagram::bind(&path).expect("a socket");
    udp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    unix.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let to_udp = format!("{{format: $uri, syslog: '{}'}}", udp.local_addr().expect("an address"));
    let to_unix =
        format!("{{format: $uri, syslog: {{server: {}, facility: daemon, tag: edge}}}}", path.display());
    for (access_log, priority, tag) in [(&to_udp, 134, "quadrille"), (&to_unix, 30, "edge")] {
        let configuration = Configuration::new(&text(&certificates, "respond: ok", access_log));
        let gateway = Gateway::with_config(&configuration.path(), 1);
        curl(&gateway, &certificates, &[], "/hello");
        let mut message = [0; 2048];
        let length = if tag == "edge" { unix.recv(&mut message) } else { udp.recv(&mut message) };
        let message = String::from_utf8_lossy(&message[..length.expect("a message")]).into_owned();
        let words: Vec<_> = message.split(' ').collect();
        assert_eq!(words[0], format!("<{priority}>1"), "{message}");
        assert!(words[1].len() == 20 && words[1].ends_with('Z'), "{message}");
        assert_eq!(words[3..], [tag, &gateway.pid().to_string(), "-", "-", "/hello"], "{message}");
    }
}

#[test]
fn mistakes_have_a_line_and_a_suggestion() {
    let certificates = Certificates::new();
    let check = |routes: &str, access_log: &str| {
        let configuration = Configuration::new(&text(&certificates, routes, access_log));
        output(quadrille("check").arg("--offline").arg(configuration.path()))
    };
    for (access_log, message) in [
        (
            "{to: stdout, format: '$remote_adr'}",
            "access_log.format: unknown variable `$remote_adr`; did you mean `$remote_addr`?",
        ),
        (
            "{to: stdout, format: {a: $stauts}}",
            "access_log.format.a: unknown variable `$stauts`; did you mean `$status`?",
        ),
        ("{format: combined}", "access_log: no destination; add `to: stdout`"),
        ("{to: stdout, max_size: 1MiB}", "access_log.max_size: only files are rotated"),
        ("{to: a.log, keep: 3}", "access_log.keep: files are not rotated without `max_size`"),
        ("{to: a.log, max_size: 10m}", "write `10MiB`"),
        (
            "{syslog: 'localhost:514'}",
            "access_log.syslog: `localhost:514` is not the address of a syslog server",
        ),
        ("{syslog: {server: '127.0.0.1:514', facility: lokal0}}", "`lokal0` is not a facility of syslog"),
    ] {
        let (ok, said) = check("respond: ok", access_log);
        assert!(!ok && said.contains(message) && said.contains("quadrille.yaml:"), "{access_log}: {said}");
    }
    let (ok, said) = check("routes: [{respond: ok, access_log: sometimes}]", "off");
    assert!(!ok && said.contains("`sometimes` is not a share of requests"), "{said}");
    let (ok, said) = check("respond: ok", "{to: stdout, format: common}\naccess_log_fields: [client]");
    assert!(ok && said.contains("no effect on lines with a `format`"), "{said}");
}
