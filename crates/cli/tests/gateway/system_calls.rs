//! System calls of an event loop per connection and request, so that their number does not grow unnoticed.
//!
//! `strace` counts the calls of the one event-loop thread. `epoll_wait` is left out: how many events one call returns
//! depends on the machine's load. All other calls are determined by what the client sends together.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, PATIENCE, eventually,
    frames::{DATA, Frames, HEADERS},
};
use boring::ssl::{SslConnector, SslMethod, SslStream};
use std::{
    collections::BTreeMap,
    fs,
    io::{self, Read, Write},
    net::{SocketAddr, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// Number of connections or requests that are counted.
const COUNTED: usize = 64;

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\n";

/// System calls by name.
type Calls = BTreeMap<String, usize>;

/// A running `strace` of one thread.
struct Tracer {
    strace: Child,
    directory: TempDir,
}

impl Tracer {
    /// Traces the gateway's event loop; `None` where processes may not be traced.
    fn attach(gateway: &Gateway) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = |name: &str| fs::File::create(directory.path().join(name)).expect("a file");
        let mut strace = Command::new("strace")
            .args(["-qqq", "-e", "signal=none", "-o"])
            .arg(directory.path().join("calls"))
            .args(["-p", &event_loop(gateway).to_string()])
            .stderr(Stdio::from(file("errors")))
            .spawn()
            .expect("strace: run scripts/install-packages.sh test");
        let this = |strace| Self { strace, directory };
        let mut refusal = None;
        eventually("strace attaches", || {
            refusal = strace.try_wait().expect("waiting");
            refusal.is_some() || is_traced(gateway)
        });
        let tracer = this(strace);
        if refusal.is_some() {
            let why = fs::read_to_string(tracer.directory.path().join("errors")).unwrap_or_default();
            let _ = writeln!(io::stderr(), "SKIPPED: system calls are not counted: {}", why.trim());
            return None;
        }
        Some(tracer)
    }

    /// Ends the trace, and returns the calls since it began.
    fn calls(mut self) -> Calls {
        crate::support::succeed(Command::new("kill").args(["-INT", &self.strace.id().to_string()]));
        self.strace.wait().expect("waiting");
        let trace = fs::read_to_string(self.directory.path().join("calls")).expect("the trace");
        let mut calls = Calls::new();
        for name in trace.lines().filter_map(|line| Some(line.split_once('(')?.0)) {
            *calls.entry(name.to_owned()).or_default() += 1;
        }
        calls.retain(|name, _| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        calls.remove("epoll_wait");
        calls
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Returns the thread id of the only event loop.
fn event_loop(gateway: &Gateway) -> u32 {
    let tasks = PathBuf::from(format!("/proc/{}/task", gateway.pid()));
    let is_event_loop =
        |task: &PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "worker-0");
    let tasks = fs::read_dir(tasks).expect("threads").map(|task| task.expect("a thread").path());
    let task = { tasks }.find(is_event_loop).expect("an event loop");
    task.file_name().and_then(|id| id.to_str()?.parse().ok()).expect("a number")
}

fn is_traced(gateway: &Gateway) -> bool {
    let status = format!("/proc/{}/task/{}/status", gateway.pid(), event_loop(gateway));
    let status = fs::read_to_string(status).expect("the thread's status");
    let tracer = status.lines().find_map(|line| line.strip_prefix("TracerPid:"));
    tracer.is_some_and(|tracer| tracer.trim() != "0")
}

/// A stream that sends what was written before it reads: the client's Finished and its first request leave together.
#[derive(Debug)]
struct Together {
    tcp: TcpStream,
    unsent: Vec<u8>,
}

impl Read for Together {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let unsent = std::mem::take(&mut self.unsent);
        self.tcp.write_all(&unsent)?;
        self.tcp.read(buffer)
    }
}

impl Write for Together {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unsent.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn connect(connector: &SslConnector, address: SocketAddr) -> SslStream<Together> {
    let tcp = TcpStream::connect(address).expect("a connection");
    tcp.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    tcp.set_nodelay(true).expect("no delay");
    let stream = Together { tcp, unsent: Vec::new() };
    connector.connect("localhost", stream).expect("a handshake")
}

/// Makes a request on a connection of its own, and reads to the end of the TCP connection.
fn visit(connector: &SslConnector, address: SocketAddr) {
    let mut tls = connect(connector, address);
    tls.write_all(format!("{REQUEST}Connection: close\r\n\r\n").as_bytes()).expect("a request");
    let mut response = String::new();
    tls.read_to_string(&mut response).expect("a response and a close_notify");
    assert!(response.ends_with("\r\n\r\nok"), "{response}");
    let mut rest = Vec::new();
    tls.get_mut().tcp.read_to_end(&mut rest).expect("the end");
    assert!(rest.is_empty(), "{rest:?}");
}

struct Served {
    gateway: Gateway,
    certificates: Certificates,
    connector: SslConnector,
    _file: Configuration,
}

fn served() -> Served {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let (chain, key) = (pair.chain.display(), pair.key.display());
    let file = Configuration::new(&format!(
        "admin: 127.0.0.1:0\nthreads: 1\nsampling: {{one_in: 1000000}}\nlisteners:\n  - {{address: '127.0.0.1:0', \
         certificates: [{{chain: {chain}, key: {key}}}], respond: ok}}\n"
    ));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut builder = SslConnector::builder(SslMethod::tls()).expect("a TLS client");
    builder.set_ca_file(certificates.ca()).expect("the CA");
    let connector = builder.build();
    // The first handshakes make keys in advance, and one is sampled.
    (0..4).for_each(|_| visit(&connector, gateway.address(0)));
    Served { gateway, certificates, connector, _file: file }
}

#[test]
fn a_connection_with_one_request() {
    let Served { gateway, connector, .. } = &served();
    let Some(tracer) = Tracer::attach(gateway) else { return };
    (0..COUNTED).for_each(|_| visit(connector, gateway.address(0)));
    let mut calls = tracer.calls();
    let mut each = |name: &str| calls.remove(name).unwrap_or(0);
    // The second call finds no other connection; without it, one that has arrived meanwhile could be missed.
    let accepts = each("accept4");
    assert!((COUNTED..=2 * COUNTED).contains(&accepts), "{accepts} calls of accept4");
    // Its first flight, then its Finished with the request.
    assert_eq!(each("recvfrom"), 2 * COUNTED, "recvfrom");
    // The handshake, then tickets, response and close_notify.
    assert_eq!(each("sendto"), 2 * COUNTED, "sendto");
    assert_eq!(each("epoll_ctl"), 2 * COUNTED, "epoll_ctl");
    assert_eq!(each("close"), COUNTED, "close");
    // A listener whose configured address has port 0 looks up the local address.
    assert_eq!(each("getsockname"), COUNTED, "getsockname");
    // Debug builds of tokio and of the standard library check the mode of a descriptor, and that it is open.
    let checks = each("fcntl");
    assert!(checks <= 2 * COUNTED, "{checks} calls of fcntl");
    assert_few(&calls);
}

#[test]
fn requests_on_a_kept_connection() {
    let Served { gateway, connector, .. } = &served();
    let mut tls = connect(connector, gateway.address(0));
    let mut get = || {
        tls.write_all(format!("{REQUEST}\r\n").as_bytes()).expect("a request");
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\nok") {
            let mut buffer = [0; 4096];
            let count = tls.read(&mut buffer).expect("a response");
            assert!(count > 0, "{}", response.escape_ascii());
            response.extend_from_slice(&buffer[..count]);
        }
    };
    get();
    let Some(tracer) = Tracer::attach(gateway) else { return };
    (0..COUNTED).for_each(|_| get());
    one_call_each_way(tracer.calls());
}

#[test]
fn requests_over_http2() {
    let Served { gateway, certificates, .. } = &served();
    let connector = Connector::new(certificates);
    let mut client = Frames::connect(&connector, gateway.address(0), 65_535);
    let mut get = |number: u32| {
        client.get(2 * number + 1, "/");
        client.expect(HEADERS);
        client.expect(DATA);
    };
    (0..4).for_each(&mut get);
    let Some(tracer) = Tracer::attach(gateway) else { return };
    (4..).take(COUNTED).for_each(&mut get);
    one_call_each_way(tracer.calls());
}

fn one_call_each_way(mut calls: Calls) {
    for name in ["recvfrom", "sendto"] {
        assert_eq!(calls.remove(name), Some(COUNTED), "{name}");
    }
    assert_few(&calls);
}

/// Other calls do not belong to connections: timers, and key pairs made in advance.
fn assert_few(others: &Calls) {
    assert!(others.values().sum::<usize>() <= COUNTED / 4, "{others:?}");
}
