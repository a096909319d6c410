//! Restarts without rejected connections: a new process takes over the sockets, or systemd holds them; and a
//! terminating process fails readiness before it closes its listeners.

use super::drain::{SLOW, SlowServer};
use crate::support::{
    Certificates, Configuration, Connector, Gateway, Http3Client, Load, PATIENCE as LIMIT,
    configuration::listener_at, curl, dns::DnsServer, document, eventually, listener, output, ports,
    quadrille, serve, succeed,
};
use std::{
    net::{SocketAddr, TcpStream},
    os::unix::net::UnixDatagram,
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

/// A drain timeout that no drain here reaches: a test that waits for it fails by [`LIMIT`].
const NEVER: &str = "600s";

fn before(server: &SlowServer, flags: &[&str]) -> (Certificates, Gateway) {
    let certificates = Certificates::new();
    let upstream = server.address.to_string();
    let flags = [&["--upstream", &upstream], flags].concat();
    let gateway = Gateway::with_flags(&certificates.ecdsa("P-256", &["localhost"]), &flags);
    (certificates, gateway)
}

/// Clients that connect and disconnect at the maximum rate; counts rejected ones.
struct Knocking {
    stop: Arc<AtomicBool>,
    connected: Arc<AtomicUsize>,
    threads: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Knocking {
    fn start(address: SocketAddr) -> Self {
        let (stop, connected) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let knock = || {
            let (stop, connected) = (Arc::clone(&stop), Arc::clone(&connected));
            move || {
                let mut refused = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    match TcpStream::connect_timeout(&address, LIMIT) {
                        Ok(_) => drop(connected.fetch_add(1, Ordering::Relaxed)),
                        Err(error) => refused.push(error.to_string()),
                    }
                    // The ports of one machine limit the rate to 28,000 connections a minute.
                    thread::sleep(Duration::from_millis(5));
                }
                refused
            }
        };
        let threads = (0..2).map(|_| thread::spawn(knock())).collect();
        Self { stop, connected, threads }
    }

    /// Returns the number of connections once it exceeds a hundred; fails if one was rejected.
    fn finish(self) -> usize {
        eventually("few connections", || self.connected.load(Ordering::Relaxed) > 100);
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            assert_eq!(thread.join().expect("a client"), [""; 0], "refused");
        }
        self.connected.load(Ordering::Relaxed)
    }
}

#[test]
fn no_connection_is_rejected_during_takeovers() {
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(&server, &["--threads", "3", "--drain-timeout", NEVER]);
    let load = Load::start(&certificates, gateway.address(0), "/quick", |body| body.starts_with("right"));
    let knocking = Knocking::start(gateway.address(0));
    let first = gateway.pid();
    let mut pids = vec![first];
    for _ in 0..4 {
        let before = load.answered();
        eventually("no load", || load.answered() > before + 50);
        gateway.take_over();
        pids.push(gateway.pid());
    }
    let before = load.answered();
    eventually("no load on the last process", || load.answered() > before + 50);
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    let knocked = knocking.finish();
    let answered = load.finish();
    eprintln!("4 processes have followed: {answered} requests, {knocked} other connections, none refused");
    pids.sort_unstable();
    pids.dedup();
    assert_eq!(pids.len(), 5);
    eventually("old processes stay", || gateway.log().matches("drained").count() == 4);
    // The admin address has been taken over too.
    assert!(gateway.metric("quadrille_connections_total", &[]) > 0.0 || !gateway.metrics().is_empty());
    gateway.signal("TERM");
    eventually("the last process keeps serving", || TcpStream::connect(gateway.address(0)).is_err());
}

#[test]
fn an_answer_under_way_is_the_old_processs_and_the_next_is_the_new_ones() {
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(&server, &["--drain-timeout", NEVER]);
    let connector = Connector::new(&certificates);
    let mut slow = connector.http(gateway.address(0)).expect("a connection");
    slow.send(b"GET /slow HTTP/1.1\r\nHost: a\r\n\r\n").expect("sending");
    server.wait_for(1);
    let mut idle = connector.http(gateway.address(0)).expect("a connection");
    assert_eq!(idle.get("/quick").expect("a response").text(), "right");
    gateway.take_over();
    let mut fresh = connector.http(gateway.address(0)).expect("a connection");
    assert_eq!(fresh.get("/quick").expect("a response").text(), "right");
    server.release();
    assert_eq!(slow.response().expect("a response").body.len(), SLOW);
    assert!(idle.is_closed());
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert_eq!(fresh.get("/quick").expect("a response").text(), "right", "the new process stays");
}

/// QUIC requests in progress when another process has taken over the sockets.
#[test]
fn http3_goes_on_in_both_processes() {
    let server = SlowServer::start();
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let upstream = format!("web: {{servers: [\"{}\"]}}", server.address);
    let text = document(&[listener(&pair, "http3: on, upstream: web")], &upstream);
    let file = Configuration::new(&format!("{text}drain_timeout: {NEVER}\n"));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Http3Client::new(&certificates);
    let mut connections: Vec<_> = (0..4).map(|_| client.connect(gateway.address(0))).collect();
    for generation in 0..2 {
        let requests: Vec<_> =
            connections.iter_mut().map(|connection| connection.start("GET", "/slow", &[], true)).collect();
        for (connection, &id) in connections.iter_mut().zip(&requests) {
            connection.run_until("no response", |connection| !connection.answer(id).text().is_empty());
        }
        gateway.take_over();
        let mut next: Vec<_> = (0..4).map(|_| client.connect(gateway.address(0))).collect();
        for connection in &mut next {
            assert_eq!(connection.get("/quick").text(), "right", "generation {generation}");
        }
        server.release();
        for (mut connection, id) in connections.into_iter().zip(requests) {
            assert_eq!(connection.finish(id).text().len(), SLOW, "generation {generation}");
        }
        connections = next;
    }
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

/// The new process has its own configuration: more event loops, another listener, and a removed listener.
#[test]
fn the_new_process_may_be_another() {
    let server = SlowServer::start();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstream = format!("web: {{servers: [\"{}\"]}}", server.address);
    let [first, second, third] = [(); 3].map(|()| SocketAddr::from(([127, 0, 0, 1], ports::free())));
    let at = |address| listener_at(address, &pair, "upstream: web");
    let file = Configuration::new(&document(&[at(first), at(second)], &upstream));
    let mut gateway = Gateway::with_config(&file.path(), 2);
    let admin = ports::free();
    for threads in [5, 1] {
        let text = document(&[at(first), at(third)], &upstream);
        let text = text.replace("threads: 2", &format!("threads: {threads}"));
        // A new admin address takes effect at the next start, such as a takeover.
        file.replace(&text.replace("admin: 127.0.0.1:0", &format!("admin: 127.0.0.1:{admin}")));
        gateway.take_over();
        let connector = Connector::new(&certificates);
        for _ in 0..20 {
            for address in [first, third] {
                let mut client = connector.http(address).expect("a connection");
                assert_eq!(client.get("/quick").expect("a response").text(), "right");
            }
        }
        eventually("the removed listener is still open", || TcpStream::connect(second).is_err());
        succeed(Command::new("curl").args(["-sS", "--fail", &format!("http://127.0.0.1:{admin}/ready")]));
    }
}

#[test]
fn a_new_process_that_cannot_serve_changes_nothing() {
    let server = SlowServer::start();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstream = format!("web: {{servers: [\"{}\"]}}", server.address);
    let text = document(&[listener(&pair, "upstream: web")], &upstream);
    let file = Configuration::new(&text);
    let mut gateway = Gateway::with_config(&file.path(), 1);
    let load = Load::start(&certificates, gateway.address(0), "/quick", |body| body.starts_with("right"));
    for _ in 0..2 {
        file.replace("listeners: nonsense\n");
        let ended = gateway.log().matches("the process has ended: exit status: 2").count();
        gateway.signal("USR2");
        eventually("the failure is not logged", || {
            gateway.log().matches("the process has ended: exit status: 2").count() > ended
        });
        assert!(
            gateway.log().contains("the new process is not ready; this one continues"),
            "{}",
            gateway.log()
        );
        file.replace(&text);
    }
    gateway.take_over();
    let before = load.answered();
    eventually("no load", || load.answered() > before + 20);
    load.finish();
}

/// Two concurrent starts: one of them has the port, and the other reports that it is in use.
#[test]
fn no_second_process_shares_the_port() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    for http3 in ["", "--http3"] {
        let port = ports::free();
        let start = || {
            let mut command = serve();
            command.args([
                "--listen",
                &format!("127.0.0.1:{port}"),
                "--admin",
                "off",
                "--respond",
                "x",
                "--cert",
            ]);
            command
                .arg(&pair.chain)
                .arg("--key")
                .arg(&pair.key)
                .args(Some(http3).filter(|flag| !flag.is_empty()));
            let file = tempfile::NamedTempFile::new().expect("a file");
            command.stderr(file.reopen().expect("the file"));
            (command.spawn().expect("quadrille"), file)
        };
        let mut started: Vec<_> = (0..3).map(|_| start()).collect();
        let end = Instant::now() + LIMIT;
        let mut refused = Vec::new();
        while refused.len() < 2 && Instant::now() < end {
            for (index, (child, file)) in started.iter_mut().enumerate() {
                let ended = child.try_wait().expect("waiting");
                if ended.is_some() && !refused.iter().any(|(known, _)| *known == index) {
                    refused.push((index, std::fs::read_to_string(file.path()).expect("its log")));
                }
            }
            thread::sleep(Duration::from_millis(20));
        }
        let mut alive = 0;
        for (child, _) in &mut started {
            alive += usize::from(child.try_wait().expect("waiting").is_none());
            let _ = child.kill();
            let _ = child.wait();
        }
        assert_eq!((alive, refused.len()), (1, 2), "{refused:?}");
        for (_, said) in refused {
            assert!(said.contains("another process listens there"), "{said}");
        }
    }
}

#[test]
fn a_process_that_leaves_is_not_ready_and_still_takes_connections() {
    let server = SlowServer::start();
    let (certificates, mut gateway) = before(&server, &["--lame-duck", "600s"]);
    let load = Load::start(&certificates, gateway.address(0), "/quick", |body| body.starts_with("right"));
    eventually("no load", || load.answered() > 20);
    gateway.signal("TERM");
    gateway.wait_for_log("shutting down: readiness off");
    let (_, said) =
        output(Command::new("curl").args(["-s", "-w", " %{http_code}", &gateway.admin("/ready")]));
    assert_eq!(said, "draining\n 503");
    assert_eq!(curl(&gateway, &certificates, &[], "/quick"), "right");
    let before = load.answered();
    eventually("no load while it leaves", || load.answered() > before + 20);
    load.finish();
    // A second signal ends the wait.
    gateway.signal("TERM");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

#[test]
fn a_process_that_leaves_ends_when_its_time_is_over_and_at_once_by_the_keyboard() {
    let server = SlowServer::start();
    let (_certificates, mut gateway) = before(&server, &["--lame-duck", "1s"]);
    let began = Instant::now();
    gateway.signal("TERM");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());

    let (_certificates, mut gateway) = before(&server, &["--lame-duck", "600s"]);
    gateway.signal("INT");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

/// systemd's own tool opens the sockets, and the notify protocol reports the main process.
#[test]
fn systemd_may_open_the_sockets() {
    let activate = "systemd-socket-activate";
    if Command::new(activate).arg("--version").output().is_err() {
        eprintln!(
            "SKIPPED: socket activation is not tested: {activate} is missing (apt-get install systemd)"
        );
        return;
    }
    let certificates = Certificates::new();
    let pair = certificates.rsa(2048, &["localhost"]);
    let directory = tempfile::tempdir().expect("a directory");
    let notified = UnixDatagram::bind(directory.path().join("notify")).expect("a socket");
    notified.set_read_timeout(Some(LIMIT)).expect("a socket");
    let hear = || {
        let mut message = [0; 200];
        let length = notified.recv(&mut message).expect("a notification");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let (port, other) = (ports::free(), ports::free());
    let mut command = Command::new(activate);
    command.args(["--listen", &format!("127.0.0.1:{port}"), "--listen", &format!("127.0.0.1:{other}")]);
    command.arg("--setenv").arg(format!("NOTIFY_SOCKET={}", directory.path().join("notify").display()));
    command.arg(env!("CARGO_BIN_EXE_quadrille"));
    command.args([
        "serve",
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--threads",
        "3",
        "--admin",
        "127.0.0.1:0",
    ]);
    command
        .args(["--respond", "right", "--lame-duck", "0", "--cert"])
        .arg(&pair.chain)
        .arg("--key")
        .arg(&pair.key);
    // The tool waits for the first connection, and then executes the gateway.
    let knock = thread::spawn(move || {
        eventually("nothing listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    });
    let mut gateway = Gateway::start(command, 1);
    knock.join().expect("a client");
    assert_eq!(hear(), "READY=1\n");
    for _ in 0..10 {
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "right");
    }
    eventually("the unused socket is not logged", || {
        gateway
            .log()
            .contains(&format!("an address without a listener; closing it address=127.0.0.1:{other}"))
    });
    gateway.take_over();
    // Messages of the old process and of the new one.
    let mut heard = [hear(), hear()];
    heard.sort_unstable();
    assert_eq!(heard, [format!("MAINPID={}\n", gateway.pid()), "READY=1\n".to_owned()]);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "right");
    assert_eq!(gateway.wait(LIMIT).and_then(|status| status.code()), Some(0), "{}", gateway.log());
}

/// Variables left in the environment by another process do not make it a predecessor.
#[test]
fn a_predecessor_that_is_not_the_parent_is_ignored() {
    let (ok, said) = output(quadrille("serve").args(["--listen", "x"]).env("QUADRILLE_PREDECESSOR", "7 1"));
    assert!(!ok && said.contains("--listen"), "{said}");
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let mut command = serve();
    command.env("QUADRILLE_PREDECESSOR", "0 1").args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.args(["--respond", "right", "--cert"]).arg(&pair.chain).arg("--key").arg(&pair.key);
    let gateway = Gateway::start(command, 1);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "right");
}

/// The new process waits for a name to resolve, while a reload is requested.
#[test]
fn a_reload_during_the_start_of_a_new_process_is_made_by_the_process_that_serves() {
    const NAME: &str = "web.quadrille.example";
    let (certificates, dns) = (Certificates::new(), DnsServer::new());
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    dns.set(NAME, &[[127, 0, 0, 1]], 3600);
    let text = |respond: &str| {
        let listener = listener(&pair, &format!("respond: {respond}"));
        let upstream = format!("web: {{servers: [\"{NAME}:1\"], dns_refresh: off}}");
        let text = document(&[listener], &upstream);
        format!("{text}resolver: {{servers: [\"{}\"], timeout: 30s}}\n", dns.address)
    };
    let file = Configuration::new(&text("one"));
    let mut gateway = Gateway::with_config(&file.path(), 1);
    dns.set_silent(true);
    let before = dns.asked();
    gateway.signal("USR2");
    gateway.wait_for_log("starting a new process to take over");
    eventually("the new process does not look up the name", || dns.asked() > before);
    file.replace(&text("two"));
    gateway.signal("HUP");
    gateway.wait_for_log("the reload waits for the new process that is starting");
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "one");
    dns.set_silent(false);
    gateway.wait_for_log("a new process has taken over");
    eventually("the new configuration is not in service", || {
        curl(&gateway, &certificates, &[], "/") == "two"
    });
    // Ends the new process with the test.
    let log = gateway.log();
    let pid =
        log.rsplit("taken over pid=").next().and_then(|rest| rest.lines().next()).expect("its process id");
    succeed(Command::new("kill").arg(pid));
}
