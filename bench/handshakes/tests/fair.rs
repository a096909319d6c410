//! The short form of `make fair`: a well-behaved client beside a few kinds of misbehaving ones loses no request, and the
//! gateway keeps running. Nothing is timed.

use std::{
    fs::File,
    io::Write,
    path::PathBuf,
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use quadrille_bench_handshakes::{
    certificate::CertificateFiles,
    fair::{self, Origin},
    rival::{Behind, Filters, Protocol, Rival, Setup},
    scenario::{KeyKind, Resumption, Scenario},
    server::free_address,
};
use quadrille_profile::load::TlsVersion;

/// Requests on each of the well-behaved client's connections.
const REQUESTS: u32 = 4;
/// Time within which the gateway must serve, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Kinds in front of an origin over HTTP/1.1, with their numbers of connections.
const ALL: &[(&str, usize)] = &[
    ("TLS, silent after the handshake", 8),
    ("HTTP/1.1, half a body", 8),
    ("HTTP/1.1, small WebSocket messages", 2),
    ("HTTP/2, 100 streams with window 0", 2),
    ("HTTP/2, reset after each request", 2),
    ("HTTP/3, 100 streams with a small window", 2),
    ("HTTP/3, reset after each request", 2),
];
/// Kinds in front of the other origin, and with filters.
const SOME: &[(&str, usize)] = &[
    ("HTTP/1.1, 1,000 large uploads", 8),
    ("HTTP/2, 100 slow downloads", 2),
    ("HTTP/3, 100 slow uploads", 2),
];

#[test]
fn a_well_behaved_client_loses_no_request() {
    check(Protocol::Http1, false, ALL);
}

#[test]
fn a_well_behaved_client_loses_no_request_to_an_http2_origin() {
    check(Protocol::Http2, false, SOME);
}

#[test]
fn a_well_behaved_client_loses_no_request_with_filters() {
    check(Protocol::Http1, true, SOME);
}

fn check(origin: Protocol, with_filters: bool, kinds: &[(&str, usize)]) {
    let Some(program) = program() else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: no quadrille beside this test; build the whole workspace");
        return;
    };
    let directory = tempfile::tempdir().expect("a folder");
    let certificate = CertificateFiles::make(KeyKind::P256, directory.path()).expect("a certificate");
    let server = || Origin::without_bodies().expect("a server").address;
    let filters = with_filters.then(|| Filters { authorization: server(), mirror: server() });
    let setup = Setup {
        address: free_address().expect("a port"),
        beside: free_address().expect("a port"),
        version: TlsVersion::V1_3,
        groups: "X25519".into(),
        certificate: &certificate,
        connections: 100,
        directory: directory.path(),
        resumption: Resumption::Off,
        upstream: Some(Origin::start(origin).expect("an origin").address),
        behind: Behind { origin, filters },
        workers: 1,
        http3: true,
        provider: None,
    };
    let mut gateway = Gateway::start(&program, &setup);
    for (name, connections) in kinds {
        let kind = fair::all_kinds().find(|kind| kind.name == *name).expect(name);
        let kind = kind.with_connections(*connections);
        let failed = fair::failures_beside(setup.address, kind, REQUESTS).expect(name);
        assert_eq!(failed, 0, "{name}");
        gateway.assert_running(name);
    }
}

/// A running gateway, ended on drop.
struct Gateway(Child);

impl Gateway {
    fn start(program: &PathBuf, setup: &Setup<'_>) -> Self {
        let logs =
            std::env::var_os("QUADRILLE_TEST_LOGS").map_or_else(|| setup.directory.into(), PathBuf::from);
        let log = File::create(logs.join(format!("fair-{}.log", setup.address.port()))).expect("a log");
        let mut command = Command::new(program);
        command.args(Rival::Quadrille.arguments(setup).expect("arguments"));
        command.stdout(log.try_clone().expect("a log")).stderr(log);
        let mut gateway = Self(command.spawn().expect("a gateway"));
        gateway.wait_until_it_serves(setup);
        gateway
    }

    fn wait_until_it_serves(&mut self, setup: &Setup<'_>) {
        let scenario = Scenario {
            version: setup.version,
            key: KeyKind::P256,
            resumption: Resumption::Off,
            groups: setup.groups.clone(),
            clients: 1,
            requests: 1,
            per_second: None,
        };
        let deadline = Instant::now() + PATIENCE;
        while scenario.load(setup.address, 1, PATIENCE).run().expect("a load").ok == 0 {
            self.assert_running("start");
            assert!(Instant::now() < deadline, "the gateway does not serve");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn assert_running(&mut self, when: &str) {
        let ended = self.0.try_wait().expect("a process");
        assert!(ended.is_none(), "{when}: the gateway has ended: {ended:?}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the gateway's program: `QUADRILLE`, or the one that was built with the workspace's tests.
fn program() -> Option<PathBuf> {
    let built = || Some(std::env::current_exe().ok()?.parent()?.parent()?.join("quadrille"));
    let program = std::env::var_os("QUADRILLE").map(PathBuf::from).or_else(built)?;
    program.is_file().then_some(program)
}
