//! The clients in other languages in `examples/clients`, with the results stated on their page, behind a load
//! balancer.

use super::Fleet;
use crate::support::succeed;
use std::{
    io::Write,
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

/// Number of sequential visits, and then of concurrent ones.
const VISITS: u32 = 10;
const CONCURRENT: u32 = 8;

#[test]
fn go_resumes_with_a_session_cache() {
    if !is_installed("go", "version") {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let program = directory.path().join("client");
    succeed(Command::new("go").arg("build").arg("-o").arg(&program).arg(example("client.go")));
    let client = || Command::new(&program);
    expect("Go", client, "default", [0, 0]);
    expect("Go", client, "resume", [17, 17]);
}

#[test]
fn python_resumes_when_it_is_handed_the_session() {
    if !is_installed("python3", "--version") {
        return;
    }
    let client = || with(Command::new("python3"), "client.py");
    expect("Python", client, "default", [0, 0]);
    expect("Python", client, "resume", [17, 17]);
}

#[test]
fn java_resumes_within_one_context_and_uses_tls13_tickets_once() {
    if !is_installed("java", "-version") {
        return;
    }
    let client = || with(Command::new("java"), "Client.java");
    expect("Java", client, "default", [0, 0]);
    // The concurrent TLS 1.3 visits have one ticket; how many more arrive in time is random.
    expect("Java", client, "resume", [17, 10]);
}

#[test]
fn curl_resumes_within_one_command() {
    if !is_installed("curl", "--version") {
        return;
    }
    let client = || with(Command::new("sh"), "curl.sh");
    expect("curl", client, "default", [0, 0]);
    expect("curl", client, "resume", [17, 17]);
}

/// Runs a client against two gateways in turn, in TLS 1.2 and 1.3, and checks the number of resumed visits: zero, or
/// at least this many.
#[track_caller]
fn expect(language: &str, client: impl Fn() -> Command, how: &str, least: [u32; 2]) {
    for (version, least) in ["1.2", "1.3"].into_iter().zip(least) {
        let fleet = Fleet::new(2, &["--tls-min", version, "--tls-max", version]);
        let url = format!("https://localhost:{}/", balancer(fleet.addresses()).port());
        let mut command = client();
        command.arg(url).arg(fleet.certificates.ca());
        succeed(command.args([VISITS.to_string(), CONCURRENT.to_string(), how.to_owned()]));
        let resumed = fleet.metric("quadrille_handshakes_total", &["resumed"]);
        let full = fleet.metric("quadrille_handshakes_total", &["full"]);
        println!("{language}, TLS {version}, {how}: {resumed} of {} resumed", resumed + full);
        assert_eq!(
            resumed + full,
            f64::from(VISITS + CONCURRENT),
            "each visit is a connection: {}",
            fleet.logs()
        );
        let is_as_documented = if least == 0 { resumed == 0.0 } else { resumed >= f64::from(least) };
        assert!(is_as_documented, "{language}, TLS {version}, {how}: {resumed} resumed, not {least}");
    }
}

/// Relays connections to each address in turn.
fn balancer(addresses: Vec<SocketAddr>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (client, server) in listener.incoming().map_while(Result::ok).zip(addresses.into_iter().cycle()) {
            let server = TcpStream::connect(server).expect("a gateway");
            let halves = (client.try_clone().expect("a socket"), server.try_clone().expect("a socket"));
            thread::spawn(move || copy(halves.0, server));
            thread::spawn(move || copy(halves.1, client));
        }
    });
    address
}

/// Relays until one side closes, and then closes the other.
fn copy(mut from: TcpStream, mut to: TcpStream) {
    let _ = std::io::copy(&mut from, &mut to);
    let _ = to.shutdown(std::net::Shutdown::Write);
}

fn example(name: &str) -> PathBuf {
    Path::new("../../examples/clients").join(name)
}

fn with(mut interpreter: Command, name: &str) -> Command {
    interpreter.arg(example(name));
    interpreter
}

/// Returns whether the language is installed, and prints a note if it is not.
fn is_installed(program: &str, argument: &str) -> bool {
    let found = Command::new(program).arg(argument).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_installed = found.is_ok_and(|status| status.success());
    if !is_installed {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: {program} is not installed, so its client is not tested");
    }
    is_installed
}
