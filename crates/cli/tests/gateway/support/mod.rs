//! Helpers of all gateway tests: a running gateway, certificates, and client commands.

mod accept;
mod authorization;
pub mod browser;
mod certificates;
mod client;
pub mod clock;
mod collector;
pub mod comparison;
pub mod configuration;
pub mod dns;
mod early;
mod echo;
mod echo_site;
pub mod frames;
pub mod grpc_service;
mod guide;
mod hello;
mod http2_server;
pub mod http3;
mod key_server;
mod load;
pub mod logs;
pub mod ml_dsa;
mod nginx;
mod openssl;
pub mod ports;
pub mod process;
mod rate_limit_service;
mod redis;
mod refusal;
mod returning;
mod slow;
mod softhsm;
mod token;
mod uninterrupted;

pub use accept::{accept, accept_blocking};
pub use authorization::{grpc_authorization, http_authorization};
pub use browser::Browser;
pub use certificates::{Certificates, Pair};
pub use client::{Client, Connector, Response};
pub use collector::{Collector, attribute};
pub use configuration::{Configuration, document, listener};
pub use early::{Early, EarlyClient};
pub use echo::{echo_server, recording_server};
pub use echo_site::EchoSite;
pub use guide::configuration_of;
pub use hello::{client_hello, client_hello_of, tls_client};
pub use http2_server::Http2Server;
pub use http3::Http3Client;
pub use key_server::{KeyServer, Site};
pub use load::Load;
pub use nginx::Nginx;
pub use openssl::{Seen, s_client};
pub use process::{Gateway, quadrille, resident, serve};
pub use rate_limit_service::rate_limit_service;
pub use redis::Redis;
pub use refusal::{refused, refused_file, secrets_of};
pub use returning::{Returning, Way};
pub use slow::SlowProxy;
pub use softhsm::SoftHsm;
pub use token::{TokenKey, jwks, seconds_from_now};
pub use uninterrupted::Uninterrupted;

use std::{
    io::ErrorKind,
    path::Path,
    process::{Command, Output},
    thread,
    time::{Duration, Instant},
};

/// Runs a command; returns whether it succeeded, and its output on both streams.
pub fn output(command: &mut Command) -> (bool, String) {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| missing(command, &error));
    (status.success(), [String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr)].concat())
}

/// Runs a command that must succeed; returns its standard output.
pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap_or_else(|error| missing(command, &error));
    assert!(status.success(), "{command:?}: {status}\n{}", String::from_utf8_lossy(&stderr));
    String::from_utf8_lossy(&stdout).into_owned()
}

/// Runs `quadrille check` of a valid configuration; returns its output on both streams, warnings included.
#[track_caller]
pub fn checked(file: &Path) -> String {
    let (ok, said) = output(quadrille("check").arg(file));
    assert!(ok, "{said}");
    said
}

/// Runs curl against the gateway, trusting its certificate's CA, with `arguments` before the URL.
pub fn curl(gateway: &Gateway, certificates: &Certificates, arguments: &[&str], path: &str) -> String {
    let port = gateway.port();
    succeed(
        Command::new("curl")
            .args(["--silent", "--show-error", "--fail", "--max-time", "180", "--cacert"])
            .arg(certificates.ca())
            .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
            .args(arguments)
            .arg(format!("https://localhost:{port}{path}")),
    )
}

/// Returns the HTTP status that curl receives.
pub fn curl_status(gateway: &Gateway, certificates: &Certificates, arguments: &[&str], path: &str) -> String {
    let port = gateway.port();
    succeed(
        Command::new("curl")
            .args(["--silent", "--max-time", "180", "--output", "/dev/null", "--write-out", "%{http_code}"])
            .arg("--cacert")
            .arg(certificates.ca())
            .args(["--resolve", &format!("localhost:{port}:127.0.0.1")])
            .args(arguments)
            .arg(format!("https://localhost:{port}{path}")),
    )
}

/// Time that a test waits for a condition before it fails: enough for a busy machine. A test continues as soon as the
/// condition is true.
pub const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until `done` is true; `what` describes the failure.
#[track_caller]
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Checks that `holds` stays true for some time, for events that must not occur: a slow machine checks less often,
/// and never fails.
#[track_caller]
pub fn throughout(time: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + time;
    while Instant::now() < end {
        assert!(holds(), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Fails if a test's client is missing, with the Debian package to install.
pub fn missing(command: &Command, error: &std::io::Error) -> ! {
    let program = command.get_program().to_string_lossy();
    let package = match program.as_ref() {
        "htpasswd" => "apache2-utils",
        "kill" => "procps",
        "redis-cli" => "redis-tools",
        "softhsm2-util" => "softhsm2",
        other => other,
    };
    match error.kind() {
        ErrorKind::NotFound => panic!("{program} is missing; install it: apt-get install {package}"),
        _ => panic!("{command:?}: {error}"),
    }
}
