//! Clients that disconnect during the handshake: the provider's descriptors and memory stay bounded.

use crate::{
    servers::haproxy,
    support::{Running, Site, free_port, handshake, until},
};
use std::{
    fs,
    io::Write,
    net::{Shutdown, TcpStream},
    process::{Command, Stdio},
};

/// Number of connections that send a ClientHello and disconnect.
const ABORTS: usize = 10_000;

/// Maximum memory growth of a process: the 512 jobs of 80 KiB that it may lose before the provider stops pausing, and
/// the same again for other allocations. If all jobs were lost, it would be 800 MiB.
const MAX_GROWTH_KIB: usize = 2 * 512 * 80;

/// Returns a process's number of descriptors, and its memory in KiB.
fn usage(running: &Running) -> (usize, usize) {
    let pid = running.pid();
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    (descriptors, line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap_or(0))
}

/// Returns a ClientHello recorded from openssl.
fn client_hello(site: &Site) -> Vec<u8> {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").expect("it is there");
    let port = socket.local_addr().expect("it is there").port();
    let mut client = Command::new("openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}")])
        .current_dir(site.path(""))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it is there");
    let (mut stream, _) = socket.accept().expect("it is there");
    let mut hello = vec![0; 4096];
    let length = std::io::Read::read(&mut stream, &mut hello).expect("it is there");
    drop(stream);
    client.wait().expect("it is there");
    hello.truncate(length);
    hello
}

fn abort(port: u16, hello: &[u8], count: usize) {
    for _ in 0..count {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { continue };
        let _ = stream.write_all(hello);
        let _ = stream.shutdown(Shutdown::Both);
    }
}

#[test]
fn descriptors_are_flat_and_lost_jobs_are_bounded() {
    let site = Site::new();
    site.certificate("rsa", "rsa:2048");
    fs::copy(site.path("rsa.both"), site.path("served.both")).expect("it is there");
    let hello = client_hello(&site);
    let port = free_port();
    let mut running = haproxy(&site, "rsa.key", port);
    until("HAProxy serves", || handshake(&site, port, "").is_some());
    // Brings HAProxy to its working size for many connections. The number of jobs lost by then depends on the
    // machine's load.
    abort(port, &hello, ABORTS / 2);
    until("the first are over", || usage(&running).0 < 60);
    let before = usage(&running);
    abort(port, &hello, ABORTS);
    until("all are over", || usage(&running).0 <= before.0 + 4);
    let after = usage(&running);
    println!(
        "{ABORTS} aborted handshakes: descriptors {} to {}, memory {} to {} KiB",
        before.0, after.0, before.1, after.1
    );
    assert!(after.1 < before.1 + MAX_GROWTH_KIB, "{before:?} {after:?}");
    assert!(running.is_alive() && handshake(&site, port, "").is_some(), "{}", running.log());
}
