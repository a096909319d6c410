//! Load balancing over several endpoints: shares, failures, health checks.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, curl, curl_status, document, eventually,
    listener, ports,
};
use std::{
    io::{Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
};

/// nginx servers that respond with their names, as one upstream with these further keys.
struct Servers {
    certificates: Certificates,
    servers: Vec<Nginx>,
    gateway: Gateway,
    _file: Configuration,
}

impl Servers {
    /// Starts one server for each weight, named 0, 1, ...
    fn new(weights: &[u32], keys: &str) -> Self {
        let certificates = Certificates::new();
        let servers: Vec<_> = (0..weights.len())
            .map(|name| Nginx::new(&format!("location / {{ return 200 {name}; }}")))
            .collect();
        let listed: Vec<_> = servers
            .iter()
            .zip(weights)
            .map(|(server, weight)| format!("{{address: \"{}\", weight: {weight}}}", server.address()))
            .collect();
        let upstreams = format!("web: {{servers: [{}], {keys}}}", listed.join(", "));
        let pair = certificates.ecdsa("P-256", &["localhost"]);
        let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        Self { certificates, servers, gateway, _file: file }
    }

    /// Returns how many of `count` requests each server serves; all of them must succeed.
    fn answers(&self, count: usize) -> Vec<usize> {
        let path = format!("/[1-{count}]");
        let names = curl(&self.gateway, &self.certificates, &["--http1.1"], &path);
        let server = |index: usize| names.matches(&index.to_string()).count();
        (0..self.servers.len()).map(server).collect()
    }

    fn status(&self) -> String {
        curl_status(&self.gateway, &self.certificates, &[], "/")
    }
}

#[test]
fn round_robin_gives_every_server_its_share() {
    assert_eq!(Servers::new(&[1, 1, 1], "balance: round_robin").answers(60), [20, 20, 20]);
    assert_eq!(Servers::new(&[3, 1], "balance: round_robin").answers(40), [30, 10]);
}

#[test]
fn random_gives_some_to_every_server_and_client_ip_all_to_one() {
    let random = Servers::new(&[1, 1], "balance: random").answers(100);
    assert!(random[0] > 10 && random[1] > 10 && random[0] + random[1] == 100, "{random:?}");
    let sticky = Servers::new(&[1, 1], "balance: client_ip").answers(40);
    assert!(sticky == [40, 0] || sticky == [0, 40], "{sticky:?}");
}

/// While one of two servers has a pending request, all others go to the other server.
#[test]
fn least_request_spares_the_server_that_has_more_to_do() {
    let certificates = Certificates::new();
    let fast = Nginx::new("location / { return 200 fast; }");
    let listener_of_slow = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let slow = listener_of_slow.local_addr().expect("an address");
    let (arrived, arrivals) = mpsc::channel();
    let (go_on, answering) = mpsc::channel::<()>();
    thread::spawn(move || {
        for mut tcp in listener_of_slow.incoming().map_while(Result::ok) {
            if !tcp.read(&mut [0; 4096]).is_ok_and(|length| length > 0) {
                continue;
            }
            arrived.send(()).expect("the test");
            answering.recv().expect("the test");
            let _ = tcp.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nslow");
        }
    });
    let upstreams = format!("web: {{servers: [\"{slow}\", \"{}\"], balance: least_request}}", fast.address());
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let text = document(&[listener(&pair, "upstream: web")], &upstreams);
    // On one event loop, a request has ended for its server when the client receives its next response.
    let file = Configuration::new(&text.replace("threads: 2", "threads: 1"));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    // One of these requests reaches the slow server, and waits there.
    let mut waiting = None;
    eventually("the slow server receives no request", || {
        let (connector, address) = (connector.clone(), gateway.address(0));
        let client = thread::spawn(move || connector.get(address, "/", "").text());
        let mut has_arrived = false;
        eventually("the request reaches no server", || {
            has_arrived = arrivals.try_recv().is_ok();
            has_arrived || client.is_finished()
        });
        waiting = has_arrived.then_some(client);
        has_arrived
    });
    for _ in 0..40 {
        assert_eq!(curl(&gateway, &certificates, &[], "/"), "fast");
    }
    go_on.send(()).expect("the slow server");
    assert_eq!(waiting.expect("a client").join().expect("a response"), "slow");
}

#[test]
fn a_dead_server_costs_no_request() {
    for balance in ["round_robin", "random", "least_request", "client_ip"] {
        for dead in [0, 1] {
            let mut servers = Servers::new(&[1, 1], &format!("balance: {balance}"));
            servers.servers[dead].stop();
            let mut expected = vec![0, 0];
            expected[1 - dead] = 40;
            assert_eq!(servers.answers(40), expected, "{balance}");
        }
    }
}

#[test]
fn two_dead_servers_of_three_cost_no_request_if_two_retries_are_allowed() {
    let mut servers = Servers::new(&[1, 1, 1], "retries: 2");
    servers.servers[0].stop();
    servers.servers[2].stop();
    assert_eq!(servers.answers(30), [0, 30, 0]);
}

#[test]
fn a_server_that_restarts_costs_no_request_on_pooled_connections() {
    let mut servers = Servers::new(&[1], "");
    for _ in 0..3 {
        assert_eq!(servers.answers(4), [4]);
        servers.servers[0].stop();
        servers.servers[0].start();
    }
}

#[test]
fn no_server_is_a_bad_gateway_and_no_healthy_one_is_unavailable() {
    let mut servers = Servers::new(&[1], "");
    assert_eq!(servers.status(), "200");
    servers.servers[0].stop();
    assert_eq!(servers.status(), "502");
    let checked = "health: {interval: 50ms, timeout: 300s, unhealthy: 1}";
    let mut servers = Servers::new(&[1], checked);
    servers.servers[0].stop();
    eventually("no 503 from a server that health checks have found dead", || servers.status() == "503");
    servers.servers[0].start();
    eventually("no recovery", || servers.status() == "200");
}

#[test]
fn health_checks_eject_a_server_and_restore_it() {
    // Without retries, only the health checks can keep requests from the dead server.
    let checked = "retries: 0, health: {path: /alive, interval: 50ms, timeout: 300s, unhealthy: 1}";
    let mut servers = Servers::new(&[1, 1], checked);
    assert_eq!(servers.answers(20), [10, 10]);
    servers.servers[1].stop();
    let dead = format!("server=\"{}\"", servers.servers[1].address());
    servers.gateway.wait_for_metric("quadrille_upstream_server_up", &[&dead], |up| up == 0.0);
    assert_eq!(servers.answers(20), [20, 0]);
    servers.servers[1].start();
    eventually("the server stays out", || servers.answers(20) == [10, 10]);
}

#[test]
fn a_server_that_answers_with_an_error_is_not_healthy() {
    let certificates = Certificates::new();
    let well = Nginx::new("return 200 well;");
    let ill = Nginx::new("location = /alive { return 500; } location / { return 200 ill; }");
    let upstreams = format!(
        "web: {{servers: [\"{}\", \"{}\"], health: {{path: /alive, interval: 50ms, timeout: 300s, unhealthy: 2}}}}",
        well.address(),
        ill.address()
    );
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let answers = || curl(&gateway, &certificates, &[], "/[1-4]");
    eventually("the ill server stays in", || answers() == "well".repeat(4));
}

#[test]
fn every_server_is_checked_under_its_own_name() {
    let certificates = Certificates::new();
    let names = ["localhost", "127.0.0.1"];
    let log = |name: &str| certificates.path(&format!("{name}.log"));
    let servers = names.map(|name| {
        Nginx::new(&format!(
            "location = /alive {{ access_log {} counted; if ($host != {name}) {{ return 421; }} return 200; }}
             location / {{ return 200 {name}; }}",
            log(name).display()
        ))
    });
    let upstreams = format!(
        "web: {{servers: [\"localhost:{}\", \"127.0.0.1:{}\"], retries: 3,
            health: {{path: /alive, interval: 50ms, timeout: 300s, unhealthy: 1}}}}",
        servers[0].address().port(),
        servers[1].address().port()
    );
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    // The result of the first check is known when the second one arrives.
    let checks = |name: &str| std::fs::read_to_string(log(name)).unwrap_or_default().lines().count();
    eventually("no checks", || names.iter().all(|name| checks(name) >= 2));
    let answers = curl(&gateway, &certificates, &[], "/[1-10]");
    assert!(answers.contains("localhost") && answers.contains("127.0.0.1"), "{answers}\n{}", gateway.log());
}

#[test]
fn idle_connections_to_a_server_are_used_again() {
    let certificates = Certificates::new();
    let nginx = Nginx::new("return 200 $connection_requests;");
    let gateway = Gateway::with_flags(
        &certificates.ecdsa("P-256", &["localhost"]),
        &["--upstream", &nginx.address().to_string(), "--threads", "1"],
    );
    for client in ["--http1.1", "--http2"] {
        let before: usize = curl(&gateway, &certificates, &[client], "/").parse().expect("a number");
        let after: usize = curl(&gateway, &certificates, &[client], "/").parse().expect("a number");
        assert_eq!(after, before + 1, "{client}");
    }
}

/// Starts nginx servers as one upstream with `balance: hash`, whose route is sticky by this.
fn sticky(by: &str) -> (Certificates, Vec<Nginx>, Gateway, Configuration) {
    let certificates = Certificates::new();
    let servers: Vec<_> =
        (0..4).map(|name| Nginx::new(&format!("location / {{ return 200 {name}; }}"))).collect();
    let listed: Vec<_> = servers.iter().map(|server| format!("\"{}\"", server.address())).collect();
    let upstreams = format!("web: {{servers: [{}], balance: hash}}", listed.join(", "));
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let routes = format!("routes: [{{upstream: web, sticky: [{by}]}}]");
    let file = Configuration::new(&document(&[listener(&pair, &routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    (certificates, servers, gateway, file)
}

#[test]
fn requests_with_the_same_header_go_to_the_same_server() {
    let (certificates, _servers, gateway, _file) = sticky("{header: x-user}");
    let of = |user: &str| curl(&gateway, &certificates, &["-H", &format!("x-user: {user}")], "/[1-5]");
    // It is practically impossible that all of them have the same server by chance.
    let users: Vec<_> = (0..40).map(|user| of(&format!("user {user}"))).collect();
    for answers in &users {
        assert_eq!(*answers, answers[..1].repeat(5), "the same server each time");
    }
    assert!(users.iter().any(|answers| *answers != users[0]), "{users:?}");
    let unnamed = curl(&gateway, &certificates, &[], "/[1-40]");
    assert!(unnamed.contains(|server: char| unnamed[..1] != *server.to_string()), "any server: {unnamed}");
}

#[test]
fn a_client_that_keeps_its_cookie_keeps_its_server() {
    let (certificates, _servers, gateway, _file) = sticky("{cookie: server, lifetime: 1h}");
    let jar = tempfile::NamedTempFile::new().expect("a file");
    let jar = jar.path().to_str().expect("a path");
    let with_jar = curl(&gateway, &certificates, &["-b", jar, "-c", jar], "/[1-20]");
    assert_eq!(with_jar, with_jar[..1].repeat(20));
    let cookie = std::fs::read_to_string(jar).expect("the cookies");
    assert!(cookie.contains("\tserver\t") && cookie.contains("#HttpOnly_"), "{cookie}");
    let without: String = (0..20).map(|_| curl(&gateway, &certificates, &[], "/")).collect();
    assert!(without.contains(|server: char| without[..1] != *server.to_string()), "any server: {without}");
}
