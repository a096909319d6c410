//! Failures behave as they do in nginx alone.

use super::{
    client::Client,
    server::{Configuration, Nginx, rsa_site},
};
use crate::support::{fail, finish, free_port, handshake, module, nginx_module, until};
use std::{
    fs,
    io::Write,
    net::TcpStream,
    sync::atomic::{AtomicUsize, Ordering},
};

/// Compares nginx's log for clients that cannot be served, including the levels.
#[test]
fn failed_handshakes_are_logged_in_nginx_words() {
    let said = ["alone", "with the module"].map(|how| {
        let site = rsa_site();
        let main = if how == "alone" { "quadrille_async off;" } else { "" };
        let nginx = Nginx::start(&site, &Configuration { main, ..Configuration::default() });
        let mut socket = TcpStream::connect(("127.0.0.1", nginx.port)).expect("nginx");
        socket.write_all(b"\x16\x03\x01\x00\x05nonsense").expect("nginx");
        assert!(handshake(&site, nginx.port, "-tls1_3 -ciphersuites TLS_AES_128_CCM_8_SHA256").is_none());
        assert!(handshake(&site, nginx.port, "-tls1_1 -cipher ALL:@SECLEVEL=0").is_none());
        let untrusting = Client::new(&rsa_site(), "served", nginx.port, "1.3");
        assert!(untrusting.get("/").is_err());
        drop(socket);
        let of_handshakes = |log: String| {
            let words = ["SSL_do_handshake() failed", "peer closed connection in SSL handshake"];
            let lines = log.lines().filter(|line| words.iter().any(|word| line.contains(word)));
            // Removes time, process and addresses.
            let mut lines: Vec<String> = lines
                .map(|line| {
                    let level = line.split_once('[').map_or("", |(_, rest)| rest).split(']').next();
                    let text = line.split_once("*").map_or("", |(_, rest)| rest);
                    let text = text.split_once(' ').map_or("", |(_, rest)| rest);
                    format!("{level:?} {}", text.split(", client").next().unwrap_or_default())
                })
                .collect();
            lines.sort();
            lines
        };
        until("four are logged", || of_handshakes(nginx.running.log()).len() >= 4);
        of_handshakes(nginx.running.log())
    });
    assert_eq!(said[0], said[1]);
}

#[test]
fn another_nginx_does_not_take_it() {
    let site = rsa_site();
    let mut bytes = fs::read(nginx_module()).expect("the module");
    let version =
        fs::read_to_string(nginx_module().with_file_name("nginx/src/core/nginx.h")).expect("nginx's header");
    let version =
        version.lines().find_map(|line| line.strip_prefix("#define nginx_version")).expect("a version");
    let version: u64 = version.trim().parse().expect("a number");
    let (this, other) = (version.to_le_bytes(), (version + 4_000).to_le_bytes());
    let places: Vec<usize> = (0..bytes.len() - 8).filter(|at| bytes[*at..*at + 8] == this).collect();
    assert!(!places.is_empty(), "the module contains the nginx version");
    for at in places {
        bytes[at..at + 8].copy_from_slice(&other);
    }
    fs::write(site.path("other.so"), bytes).expect("a file");
    let file =
        site.write("other.conf", &format!("load_module {};\nevents {{ }}\n", site.path_text("other.so")));
    let said = fail(site.plain("/usr/sbin/nginx").arg("-t").arg("-c").arg(file));
    assert!(said.contains("instead of"), "nginx's own message: {said}");
}

#[test]
fn a_key_server_that_is_gone_fails_handshakes_and_nothing_else() {
    let site = rsa_site();
    site.certificate("rsa", "rsa:2048");
    let server = site.key_server("keys", &["rsa"]);
    site.stand_in("remote.key", &["keys"], "rsa", &[]);
    fs::copy(site.path("rsa.pem"), site.path("served.pem")).expect("a certificate");
    fs::copy(site.path("remote.key"), site.path("served.key")).expect("a stand-in");
    let nginx = Nginx::start(&site, &Configuration::default());
    let client = nginx.client(&site, "1.3");
    assert_eq!(client.get("/there").expect("a response"), "/there");
    drop(server);
    assert!(client.get("/gone").is_err());
    let _server = site.key_server("keys", &["rsa"]);
    until("the key server is used again", || client.get("/back").is_ok_and(|answer| answer == "/back"));
    assert_eq!(nginx.status("quadrille_jobs"), 0.0);
}

/// A key server that accepts operations and does not respond: nginx closes connections at their timeouts, and
/// reloads, while their jobs still wait; the operations end at their own deadline, and the jobs with them.
#[test]
fn connections_that_are_closed_while_their_job_waits() {
    closed_while_their_jobs_wait("localhost", false);
}

/// The key server responds after nginx has closed the connections, so that the handshakes continue.
#[test]
fn connections_that_are_closed_before_their_result_comes() {
    closed_while_their_jobs_wait("localhost", true);
}

/// Handshakes start at a server with jobs, and SNI selects a server without.
#[test]
fn connections_that_are_closed_at_a_server_that_is_off() {
    closed_while_their_jobs_wait("off.example", true);
}

/// An operation ends after some seconds, and nginx closes a connection after one. The test is repeated if, on a slow
/// machine, the first operations end before the last connection is closed.
fn closed_while_their_jobs_wait(name: &str, answered: bool) {
    until("all jobs wait when all connections are closed", || {
        are_closed_while_their_jobs_wait(name, answered)
    });
}

fn are_closed_while_their_jobs_wait(name: &str, answered: bool) -> bool {
    let site = rsa_site();
    site.certificate("rsa", "rsa:2048");
    let server = site.key_server("keys", &["rsa"]);
    site.stand_in("remote.key", &["keys"], "rsa", &[]);
    fs::copy(site.path("rsa.pem"), site.path("served.pem")).expect("a certificate");
    fs::copy(site.path("remote.key"), site.path("served.key")).expect("a stand-in");
    let port = free_port();
    let http = format!(
        "server {{ listen 127.0.0.1:{port} ssl; server_name localhost; client_header_timeout 1s; }}\n\
         server {{ listen 127.0.0.1:{port} ssl; server_name off.example; quadrille_async off; }}\n"
    );
    let configuration = Configuration { http: &http, log_level: "debug", ..Configuration::default() };
    let nginx = Nginx::start(&site, &configuration);
    server.signal(libc::SIGSTOP);
    let closed = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for version in ["1.2", "1.3"].repeat(4) {
            let client = Client::new(&site, "served", port, version);
            let closed = &closed;
            scope.spawn(move || {
                assert!(client.get_for(name, "/").is_err());
                closed.fetch_add(1, Ordering::Relaxed);
            });
        }
        until("all wait", || nginx.status("quadrille_jobs") == 8.0 || closed.load(Ordering::Relaxed) == 8);
    });
    // nginx did not wait for the key server: the operations are in progress.
    if nginx.status("quadrille_jobs") != 8.0 {
        server.signal(libc::SIGCONT);
        return false;
    }
    // New connections reuse the descriptors of those that are closed.
    let idle: Vec<TcpStream> =
        (0..8).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("nginx")).collect();
    if answered {
        server.signal(libc::SIGCONT);
    }
    until("the jobs have ended", || nginx.status("quadrille_jobs") == 0.0);
    assert_eq!(nginx.status("quadrille_abandoned_total"), 8.0);
    for mut connection in idle {
        connection.set_nonblocking(true).expect("a socket");
        let nothing = std::io::Read::read(&mut connection, &mut [0; 16]);
        assert!(!matches!(nothing, Ok(1..)), "it received data of another connection: {nothing:?}");
    }
    server.signal(libc::SIGCONT);
    nginx.assert_log_is_clean("-");
    true
}

/// Runs every way in which a handshake can end, with each memory access checked.
#[test]
fn valgrind_finds_nothing() {
    let site = rsa_site();
    // Debian 12's valgrind cannot read Rust's debug information.
    finish(site.plain("strip").args(["--strip-debug", "-o", "stripped.so"]).arg(module()));
    let configuration = site.read("openssl.cnf");
    site.write(
        "openssl.cnf",
        &configuration.replace(&module().display().to_string(), &site.path_text("stripped.so")),
    );
    let mut valgrind = site.with_provider("valgrind");
    // Valgrind does not support AVX-512; the portable tier is BoringSSL's.
    valgrind.env("QUADRILLE_CPU", "portable").args(["--error-exitcode=9", "--leak-check=full"]);
    valgrind.args(["--errors-for-leak-kinds=none", "--show-leak-kinds=definite", "/usr/sbin/nginx"]);
    let main = "master_process off;";
    let server = "client_header_timeout 3s;";
    let mut nginx =
        Nginx::start_as(&site, valgrind, &Configuration { main, server, ..Configuration::default() });
    for version in ["1.2", "1.3"] {
        let client = nginx.client(&site, version);
        // The engine measures before its first operation, which takes seconds under valgrind.
        until("it serves", || client.get("/whole").is_ok_and(|answer| answer == "/whole"));
        for bytes in (0..4_000).step_by(400) {
            client.leave_after(bytes, bytes % 800 == 0).expect("nginx");
        }
        client.fall_silent(700).expect("nginx");
    }
    assert!(handshake(&site, nginx.port, "-tls1_1 -cipher ALL:@SECLEVEL=0").is_none());
    until("nothing waits", || nginx.status("quadrille_jobs") == 0.0);
    nginx.running.signal(libc::SIGQUIT);
    // Under valgrind, another thread may receive the signal, which does not interrupt the event loop.
    until("it has ended", || {
        let _ = TcpStream::connect(("127.0.0.1", nginx.port));
        !nginx.running.is_alive()
    });
    let said = nginx.running.log();
    let summary = said.lines().find(|line| line.contains("ERROR SUMMARY"));
    assert!(summary.is_some_and(|line| line.contains("ERROR SUMMARY: 0 errors")), "{said}");
    assert!(!said.contains("ngx_quadrille"), "it leaks memory: {said}");
}
