//! The stock Envoy beside Quadrille, and comparisons of their responses.

use super::serving;
use crate::support::{Configuration, Gateway, eventually, logs, output, ports};
use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Prints that nothing was compared.
pub fn skipped() {
    // Bypasses the output capture of tests, because a skipped test passes.
    let _ = writeln!(std::io::stderr(), "SKIPPED: no Envoy to compare with; set ENVOY=PATH");
}

/// Returns the status, the headers that routes determine, in order, and the body.
pub(super) fn ask(scheme: &str, port: u16, path: &str, arguments: &[&str]) -> Vec<String> {
    ask_host(scheme, "127.0.0.1", port, path, arguments)
}

/// Requests this of a host without verification of its certificate.
pub fn ask_host(scheme: &str, host: &str, port: u16, path: &str, arguments: &[&str]) -> Vec<String> {
    // For responses that depend on `Origin`, `Vary` is sent here and not by Envoy.
    const OWN: [&str; 7] =
        ["vary", "date", "server", "content-length", "transfer-encoding", "connection", "keep-alive"];
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "300", "--path-as-is", "--globoff", "--include"]).args(arguments);
    command.args(["--insecure", "--noproxy", "*", "--resolve", &format!("{host}:{port}:127.0.0.1")]);
    let (_, said) = output(command.arg(format!("{scheme}://{host}:{port}{path}")));
    let said = with_port_named(&said.replace('\r', ""), port);
    let (head, body) = said.split_once("\n\n").unwrap_or((&said, ""));
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).unwrap_or("none");
    let kept = |line: &&str| {
        !OWN.contains(&line.split(':').next().unwrap_or_default().to_ascii_lowercase().as_str())
    };
    // The duration differs each time.
    let timed = |line: &str| match line.strip_prefix("x-envoy-upstream-service-time: ") {
        Some(took) if took.parse::<u64>().is_ok() => "x-envoy-upstream-service-time: MS".to_owned(),
        _ => line.to_owned(),
    };
    let lower = lines.filter(kept).map(str::to_ascii_lowercase);
    let mut headers: Vec<String> = lower.map(|line| timed(&line)).collect();
    headers.sort();
    [vec![status.to_owned()], headers, vec![body.to_owned()]].concat()
}

/// Replaces each occurrence of the port with PORT. Digits within a longer word are kept: a hexadecimal identifier may
/// contain them by chance.
fn with_port_named(text: &str, port: u16) -> String {
    let port = port.to_string();
    let pieces: Vec<_> = text.split(&port).collect();
    let mut named = pieces[0].to_owned();
    for sides in pieces.windows(2) {
        let in_word =
            sides[0].ends_with(char::is_alphanumeric) || sides[1].starts_with(char::is_alphanumeric);
        named += if in_word { &port } else { "PORT" };
        named += sides[1];
    }
    named
}

#[test]
fn a_port_is_named_where_it_is_a_number_of_its_own() {
    let said = "host: a:40123\nx-forwarded-port: 40123\ntraceparent: 00-c40123aa-d4012300f7-01\n40123";
    let named = "host: a:PORT\nx-forwarded-port: PORT\ntraceparent: 00-c40123aa-d4012300f7-01\nPORT";
    assert_eq!(with_port_named(said, 40_123), named);
}

/// Returns the stock Envoy: the one given, or the one that the script finds or fetches.
pub fn envoy() -> Option<PathBuf> {
    if let Some(path) = std::env::var_os("ENVOY").filter(|path| !path.is_empty()) {
        return Some(path.into());
    }
    let found = Command::new("../../scripts/fetch-envoy.sh")
        .stderr(Stdio::inherit())
        .output()
        .expect("fetch-envoy.sh");
    let path = String::from_utf8(found.stdout).expect("a path").trim().to_owned();
    (!path.is_empty()).then(|| path.into())
}

/// Returns a bootstrap with one HTTP listener. `manager` contains fields of its connection manager besides the
/// prefix, and `clusters` those besides `app`, each with its indentation. ADMIN, LISTEN and UPSTREAM, the server of
/// `app`, are for [`with_ports`].
pub(super) fn bootstrap(manager: &str, clusters: &str) -> String {
    let (manager, clusters) = (manager.trim_start_matches('\n'), clusters.trim_start_matches('\n'));
    format!("{LISTENER}{manager}{APP}{clusters}")
}

const LISTENER: &str = r#"
admin: { address: { socket_address: { address: 127.0.0.1, port_value: ADMIN } } }
static_resources:
  listeners:
  - name: web
    address: { socket_address: { address: 127.0.0.1, port_value: LISTEN } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: web
"#;

const APP: &str = "  clusters:
  - name: app
    connect_timeout: 1s
    load_assignment: { cluster_name: app, endpoints: [ { lb_endpoints: [ { endpoint: { address: { socket_address: { address: 127.0.0.1, port_value: UPSTREAM } } } } ] } ] }
";

/// Replaces the names in the bootstrap with ports.
pub(super) fn with_ports(text: &str, ports: &[(&str, u16)]) -> String {
    ports.iter().fold(text.to_owned(), |text, (name, port)| {
        text.replace(&format!("port_value: {name}"), &format!("port_value: {port}"))
    })
}

/// Quadrille and the stock Envoy, both serving the same bootstrap.
pub(super) struct Both {
    pub(super) gateway: Gateway,
    /// Envoy's port and its admin port.
    port: u16,
    admin: u16,
    _files: [Configuration; 2],
    _envoy: Envoy,
}

impl Both {
    /// Starts them with this bootstrap, in which ADMIN and LISTEN are the ports; `None` if there is no Envoy.
    pub(super) fn start(text: &str) -> Option<Self> {
        let Some(program) = envoy() else {
            skipped();
            return None;
        };
        let (gateway, ours) = serving(text);
        let (admin, port) = (ports::free(), ports::free());
        let theirs = Configuration::new(&with_ports(text, &[("ADMIN", admin), ("LISTEN", port)]));
        let envoy = Envoy::start(&program, &theirs);
        eventually("Envoy does not serve", || ask("http", admin, "/ready", &[])[0] == "200");
        Some(Self { gateway, port, admin, _files: [ours, theirs], _envoy: envoy })
    }

    /// Returns the port of each.
    pub(super) fn ports(&self) -> [u16; 2] {
        [self.gateway.port(), self.port]
    }

    /// Returns the differences between their responses to these requests, each a path with curl's arguments.
    pub(super) fn differences(&self, requests: &[(&str, &[&str])]) -> Vec<String> {
        let differs = |(path, arguments): &(&str, &[&str])| {
            let [ours, theirs] = self.ask("http", path, arguments);
            difference(&format!("{path} {arguments:?}"), &ours, &theirs)
        };
        requests.iter().filter_map(differs).collect()
    }

    /// Returns the URL of this admin page for each.
    pub(super) fn admin_pages(&self, path: &str) -> [String; 2] {
        [self.gateway.admin(path), format!("http://127.0.0.1:{}{path}", self.admin)]
    }

    /// Returns each response; the character set of local replies is removed.
    pub(super) fn ask(&self, scheme: &str, path: &str, arguments: &[&str]) -> [Vec<String>; 2] {
        self.ports().map(|port| {
            let mut answer = ask(scheme, port, path, arguments);
            answer.retain(|line| !line.starts_with("content-type:"));
            answer
        })
    }
}

/// Returns both responses if they differ.
pub fn difference(what: &str, ours: &[String], theirs: &[String]) -> Option<String> {
    (ours != theirs).then(|| format!("{what}\n  Quadrille {ours:?}\n  Envoy     {theirs:?}"))
}

/// A running Envoy; killed when dropped.
pub(super) struct Envoy(Child);

impl Envoy {
    pub(super) fn start(program: &Path, bootstrap: &Configuration) -> Self {
        let mut command = Command::new(program);
        command.arg("-c").arg(bootstrap.path()).args(["--concurrency", "1", "--use-dynamic-base-id"]);
        Self(command.stdout(Stdio::null()).stderr(logs::create("envoy")).spawn().expect("Envoy"))
    }
}

impl Drop for Envoy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
