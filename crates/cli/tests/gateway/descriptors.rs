//! File descriptors: the limit, and the behaviour when they run short.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, curl, document, echo_server, eventually,
    listener,
};
use std::{net::TcpStream, path::Path, process::Command, time::Instant};

/// Starts a gateway with this limit of open files, in the syntax of `ulimit`.
fn limited(limit: &str, file: &Path) -> Gateway {
    let mut command = Command::new("sh");
    let program = env!("CARGO_BIN_EXE_quadrille");
    command.arg("-c").arg(format!("ulimit {limit}; exec {program} serve --config {}", file.display()));
    Gateway::start(command, 1)
}

fn open_files(gateway: &Gateway) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", gateway.pid())).expect("open files").count()
}

#[test]
fn the_soft_limit_is_raised_to_the_hard_one() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "respond: ok")], ""));
    let gateway = limited("-Sn 64", &file.path());
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", gateway.pid())).expect("limits");
    let line = limits.lines().find(|line| line.starts_with("Max open files")).expect("the limit of files");
    let numbers: Vec<_> = line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] == numbers[1] && numbers[0] != "64", "{line}");
}

#[test]
fn the_oldest_idle_connections_make_room_for_new_ones() {
    const LIMIT: usize = 160;
    const CLIENTS: usize = 2 * LIMIT;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let web = format!("web: {{servers: [\"{}\"]}}", echo_server());
    let keys = "upstream: web, timeouts: {handshake: 600s, handshake_deadline: off, idle: 600s}";
    let file = Configuration::new(&document(&[listener(&pair, keys)], &web));
    let mut gateway = limited(&format!("-n {LIMIT}"), &file.path());
    let connector = Connector::new(&certificates);
    let began = Instant::now();
    let mut clients: Vec<Client> = Vec::new();
    for count in 0..CLIENTS {
        let mut client = connector.http(gateway.address(0)).expect("a connection");
        assert_eq!(client.get("/").expect("a response").status, 200, "client {count}");
        clients.push(client);
    }
    // Descriptors remain for other uses.
    assert!(open_files(&gateway) < LIMIT, "{} are open", open_files(&gateway));
    let closed = gateway.metric("quadrille_idle_connections_closed_total", &[]);
    assert!(closed >= (CLIENTS - LIMIT) as f64, "{}", gateway.metrics());
    gateway.signal("HUP");
    gateway.wait_for_metric("quadrille_reloads_total", &["ok"], |count| count == 1.0);
    assert!(clients[0].is_closed(), "the oldest");
    assert_eq!(clients[CLIENTS - 1].get("/").expect("a response").status, 200, "the newest");
    gateway.wait_for_log("file descriptors nearly exhausted");
    let lines = gateway.log().matches("file descriptors nearly exhausted").count();
    assert!((1..=1 + began.elapsed().as_secs() as usize).contains(&lines), "{lines} lines");
}

#[test]
fn connections_with_active_requests_are_not_closed() {
    const LIMIT: usize = 120;
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(
        &[listener(&pair, "respond: ok, timeouts: {handshake: 600s, handshake_deadline: off, header: 600s}")],
        "",
    ));
    let gateway = limited(&format!("-n {LIMIT}"), &file.path());
    let connector = Connector::new(&certificates);
    let mut busy: Vec<Client> = Vec::new();
    // Connections with a pending request, until no more are accepted.
    while gateway.metric("quadrille_accept_pauses_total", &[]) == 0.0 {
        let mut client = connector.http(gateway.address(0)).expect("a connection");
        client.send(b"GET / HTTP/1.1\r\n").expect("sending");
        busy.push(client);
        assert!(busy.len() < LIMIT, "all are accepted");
    }
    let before = open_files(&gateway);
    // Further connections wait in the kernel's queue.
    let waiting: Vec<_> = (0..LIMIT).map(|_| TcpStream::connect(gateway.address(0))).collect();
    assert!(gateway.admin_page("/ready").contains("ready") && open_files(&gateway) < LIMIT);
    for client in &mut busy {
        client.send(b"Host: localhost\r\nConnection: close\r\n\r\n").expect("sending");
        assert_eq!(client.response().expect("a response").text(), "ok");
    }
    drop((busy, waiting));
    eventually("clients are accepted again", || open_files(&gateway) < before);
    assert_eq!(curl(&gateway, &certificates, &[], "/"), "ok");
}
