//! The gateway as a sidecar: a pod's traffic is redirected through it, in the test's own network namespaces. It is
//! compared with the stock Envoy with the same configuration.

mod network;
mod servers;

use crate::{
    envoy::stock,
    support::{Certificates, Configuration, PATIENCE, Pair, output},
};
pub(crate) use network::{GATEWAY, POD};
use network::{Namespace, Network, OUTSIDE, OUTSIDE_V6, POD_V6};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// ALPN protocol that Istio's proxies offer for HTTP/1.1 requests.
pub(crate) const HTTP: &str = "istio-http/1.1,istio,http/1.1";
/// An address without a listener.
pub(crate) const ELSEWHERE: &str = "192.0.2.7";

/// A pod with its programs, and external servers.
pub(crate) struct Pod {
    pub(crate) network: Network,
    certificates: Certificates,
    pair: Pair,
}

/// A proxy in the pod; killed when dropped.
struct Proxy {
    child: Child,
    log: tempfile::NamedTempFile,
    _file: Configuration,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pod {
    /// Creates the site; if network namespaces are not allowed, prints a note and returns `None`.
    pub(crate) fn start() -> Option<Self> {
        let network = Network::start()?;
        let certificates = Certificates::new();
        let pair = certificates.ecdsa("P-256", &["app"]);
        let (pod, outside) = (&network.pod, &network.outside);
        outside.also_at(ELSEWHERE);
        servers::http(outside, &format!("{OUTSIDE}:8080"), "service");
        servers::http(outside, &format!("{ELSEWHERE}:80"), "elsewhere");
        servers::http(outside, &format!("[{OUTSIDE_V6}]:80"), "elsewhere");
        servers::greeting(outside, &format!("{OUTSIDE}:80"), "bytes");
        servers::greeting(outside, &format!("{OUTSIDE}:3306"), "database");
        servers::greeting(outside, &format!("{ELSEWHERE}:7000"), "unknown");
        for port in [8080, 8081, 8090] {
            servers::http(pod, &format!("[::]:{port}"), "app");
        }
        servers::greeting(pod, "0.0.0.0:9000", "app");
        servers::greeting(pod, "0.0.0.0:9001", "app");
        Some(Self { network, certificates, pair })
    }

    /// Starts a proxy with Istio's configuration, on every address.
    fn proxy(&self, program: &Path, arguments: &[&str], option: &str, every: &str) -> Proxy {
        let text = include_str!("bootstrap.yaml")
            .replace("WILDCARD", every)
            .replace("CHAIN", &self.pair.chain.display().to_string())
            .replace("KEY", &self.pair.key.display().to_string())
            .replace("ROOT", &self.certificates.ca().display().to_string());
        let file = Configuration::new(&text);
        let log = tempfile::NamedTempFile::new().expect("a log");
        let mut command = Command::new(program);
        command.args(arguments).arg(option).arg(file.path()).gid(GATEWAY);
        let (out, error) = (log.reopen().expect("a log"), log.reopen().expect("a log"));
        command.stdin(Stdio::null()).stdout(out).stderr(error);
        let child = self.network.pod.inside(|| command.spawn().expect("a proxy"));
        let proxy = Proxy { child, log, _file: file };
        let end = Instant::now() + PATIENCE;
        while !self.network.pod.inside(|| TcpStream::connect("127.0.0.1:15006").is_ok()) {
            assert!(Instant::now() < end, "{}", proxy.log());
            thread::sleep(Duration::from_millis(20));
        }
        proxy
    }

    fn quadrille(&self, every: &str) -> Proxy {
        self.proxy(Path::new(env!("CARGO_BIN_EXE_quadrille")), &["serve"], "--envoy-config", every)
    }

    /// Returns the responses to the requests of clients, inside and outside the pod.
    fn answers(&self) -> Vec<(&'static str, String)> {
        let (pod, outside) = (&self.network.pod, &self.network.outside);
        let at = |port: u16| format!("{POD}:{port}");
        vec![
            ("a service", get(pod, "http://10.96.0.20/x", &["--header", "host: service.example"])),
            ("an unknown host", get(pod, &format!("http://{ELSEWHERE}/x"), &[])),
            (
                "the same over HTTP/2",
                get(
                    pod,
                    "http://10.96.0.20/h2",
                    &["--http2-prior-knowledge", "--header", "host: service.example"],
                ),
            ),
            ("a service of TCP", talk(pod, "10.96.0.10:3306", b"ping")),
            ("an unknown port", talk(pod, &format!("{ELSEWHERE}:7000"), b"ping")),
            ("bytes where HTTP is expected", talk(pod, &format!("{OUTSIDE}:80"), b"\0ping")),
            ("the outbound listener itself", talk(pod, "127.0.0.1:15001", b"ping")),
            ("another host's outbound listener", talk(pod, &format!("{ELSEWHERE}:15001"), b"ping")),
            ("the app in plain text", get(outside, &format!("http://{}/x", at(8080)), &[])),
            ("the app over mutual TLS", self.mutual(&at(8080), HTTP)),
            ("the app over mutual TLS as bytes", self.mutual(&at(8080), "istio")),
            ("an unknown port over mutual TLS", self.mutual(&at(8090), HTTP)),
            ("an unknown port in plain text", get(outside, &format!("http://{}/x", at(8090)), &[])),
            ("an unknown port with bytes", talk(outside, &at(9001), b"\0ping")),
            ("a strict port in plain text", get(outside, &format!("http://{}/x", at(8081)), &[])),
            ("a strict port over mutual TLS", self.mutual(&at(8081), HTTP)),
            (
                "a strict port without a certificate",
                self.over_tls(&self.certificates.ca(), &at(8081), HTTP, &[]),
            ),
            ("a port of TCP whose server speaks first", talk(outside, &at(9000), b"ping")),
            ("the inbound listener itself", talk(outside, &at(15006), b"ping")),
        ]
    }

    fn mutual(&self, address: &str, alpn: &str) -> String {
        let (chain, key) = (self.pair.chain.display().to_string(), self.pair.key.display().to_string());
        self.over_tls(&self.certificates.ca(), address, alpn, &["-cert", &chain, "-key", &key])
    }

    /// Returns the body of a response over TLS with a certificate of this CA and this ALPN protocol.
    pub(crate) fn over_tls(&self, ca: &Path, address: &str, alpn: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("openssl");
        command.args(["s_client", "-quiet", "-verify_return_error", "-alpn", alpn, "-connect", address]);
        command.arg("-CAfile").arg(ca).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = self.network.outside.inside(|| command.spawn().expect("openssl"));
        let request = b"GET /x HTTP/1.1\r\nhost: app\r\nconnection: close\r\n\r\n";
        let mut stdin = child.stdin.take().expect("a pipe");
        let _ = stdin.write_all(request);
        let mut said = Vec::new();
        let mut stdout = child.stdout.take().expect("a pipe");
        // The client exits when the server has closed.
        let _ = stdout.read_to_end(&mut said);
        drop(stdin);
        let _ = child.kill();
        let _ = child.wait();
        let said = String::from_utf8_lossy(&said).into_owned();
        said.split_once("\r\n\r\n").map_or("closed".to_owned(), |(_, body)| body.to_owned())
    }
}

impl Proxy {
    fn log(&self) -> String {
        std::fs::read_to_string(self.log.path()).unwrap_or_default()
    }
}

/// Returns the body of a response, with its status if that is not 200; `closed` without a response.
pub(crate) fn get(from: &Namespace, url: &str, arguments: &[&str]) -> String {
    let mut command = Command::new("curl");
    command.args(["--silent", "--max-time", "300", "--noproxy", "*", "--write-out", " %{http_code}", url]);
    let (_, said) = from.inside(|| output(command.args(arguments)));
    match said.rsplit_once(' ') {
        Some((body, "200")) => body.to_owned(),
        Some((_, "000")) => "closed".to_owned(),
        _ => said,
    }
}

/// Returns the bytes that a server sends first, and its response to these bytes, if any.
pub(crate) fn talk(from: &Namespace, address: &str, bytes: &[u8]) -> String {
    let address: SocketAddr = address.parse().expect("an address");
    let said = from.inside(|| {
        let mut said = Vec::new();
        let Ok(mut stream) = TcpStream::connect_timeout(&address, PATIENCE) else {
            return said;
        };
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        // A server of an unknown protocol may wait for the client to send first.
        let begins = bytes.first() == Some(&0);
        if begins {
            let _ = stream.write_all(bytes);
        }
        let mut part = [0; 1024];
        let mut sent = begins;
        while let Ok(length @ 1..) = stream.read(&mut part) {
            said.extend_from_slice(&part[..length]);
            if !sent {
                let _ = stream.write_all(bytes);
                sent = true;
            }
            if said.ends_with(bytes) {
                break;
            }
        }
        said
    });
    match said.is_empty() {
        true => "closed".to_owned(),
        false => String::from_utf8_lossy(&said).replace('\0', "").replace('\n', " "),
    }
}

/// Expected responses by request.
const EXPECTED: &[(&str, &str)] = &[
    ("a service", "service 10.0.0.2 /x"),
    ("an unknown host", "elsewhere 10.0.0.2 /x"),
    ("the same over HTTP/2", "service 10.0.0.2 /h2"),
    ("a service of TCP", "database 10.0.0.2 ping"),
    ("an unknown port", "unknown 10.0.0.2 ping"),
    ("bytes where HTTP is expected", "bytes 10.0.0.2 ping"),
    ("the outbound listener itself", "closed"),
    ("another host's outbound listener", "closed"),
    ("the app in plain text", "app 127.0.0.6 /x"),
    ("the app over mutual TLS", "app 127.0.0.6 /x shown"),
    ("the app over mutual TLS as bytes", "app 127.0.0.6 /x shown"),
    ("an unknown port over mutual TLS", "app 127.0.0.6 /x shown"),
    ("an unknown port in plain text", "app 127.0.0.6 /x"),
    ("an unknown port with bytes", "app 127.0.0.6 ping"),
    ("a strict port in plain text", "closed"),
    ("a strict port over mutual TLS", "app 127.0.0.6 /x shown"),
    ("a strict port without a certificate", "closed"),
    ("a port of TCP whose server speaks first", "app 127.0.0.6 ping"),
    ("the inbound listener itself", "closed"),
];

#[test]
fn redirected_connections_go_where_they_belong() {
    let Some(pod) = Pod::start() else { return };
    let proxy = pod.quadrille("0.0.0.0");
    for ((what, answer), (_, expected)) in pod.answers().iter().zip(EXPECTED) {
        assert_eq!(answer, expected, "{what}\n{}", proxy.log());
    }
}

#[test]
fn both_send_redirected_connections_to_the_same_places() {
    let Some(pod) = Pod::start() else { return };
    let Some(envoy) = stock::envoy() else { return stock::skipped() };
    let _proxy = pod.proxy(&envoy, &["--concurrency", "1", "--use-dynamic-base-id"], "-c", "0.0.0.0");
    for ((what, answer), (_, expected)) in pod.answers().iter().zip(EXPECTED) {
        assert_eq!(answer, expected, "{what}");
    }
}

/// Original destinations on `::`: for IPv4 connections the kernel is queried differently than for IPv6.
#[test]
fn both_families_are_redirected_to_one_listener() {
    let Some(pod) = Pod::start() else { return };
    let proxy = pod.quadrille("::");
    let (inside, outside) = (&pod.network.pod, &pod.network.outside);
    for (answer, expected) in [
        (get(inside, &format!("http://[{OUTSIDE_V6}]/x"), &[]), format!("elsewhere {POD_V6} /x")),
        (get(inside, &format!("http://{ELSEWHERE}/x"), &[]), format!("elsewhere {POD} /x")),
        (
            get(inside, "http://10.96.0.20/x", &["--header", "host: service.example"]),
            format!("service {POD} /x"),
        ),
        (
            get(inside, "http://[fd00:96::1]/x", &["--header", "host: service.example"]),
            format!("service {POD} /x"),
        ),
        (get(outside, &format!("http://[{POD_V6}]:8080/x"), &[]), "app ::6 /x".to_owned()),
        (get(outside, &format!("http://{POD}:8080/x"), &[]), "app 127.0.0.6 /x".to_owned()),
    ] {
        assert_eq!(answer, expected, "{}", proxy.log());
    }
}

/// A connection forwarded to one of the gateway's own listeners would loop.
#[test]
fn nothing_is_sent_on_to_the_gateway_itself() {
    let Some(pod) = Pod::start() else { return };
    let proxy = pod.quadrille("0.0.0.0");
    // The inbound listener has only its catch-all chain for the outbound listener's port.
    for address in [format!("{POD}:15001"), format!("{POD}:15000")] {
        assert_eq!(talk(&pod.network.outside, &address, b"\0ping"), "closed", "{address}\n{}", proxy.log());
    }
    let stats = get(&pod.network.pod, "http://127.0.0.1:15000/stats", &[]);
    let accepted = |listener: &str| {
        let name = format!("listener.{listener}.downstream_cx_total: ");
        stats.lines().find_map(|line| line.strip_prefix(&name)).map(str::to_owned)
    };
    assert_eq!(accepted("0.0.0.0_15001").as_deref(), Some("0"), "{stats}");
}
