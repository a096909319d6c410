//! HTTP/3 in Envoy's configuration: a UDP listener beside a TCP listener.

use super::{
    stock::{Envoy, envoy, skipped},
    upstream,
};
use crate::support::{
    Certificates, Configuration, Gateway, Http3Client, eventually,
    http3::{Answer, Http3},
    output, ports, serve,
};
use std::{
    net::{Ipv4Addr, SocketAddr},
    process::Command,
    thread,
    time::{Duration, Instant},
};

const BOOTSTRAP: &str = include_str!("http3.yaml");

/// A request's path and one header field.
type Asked = (&'static str, Option<(&'static str, &'static str)>);

const REQUESTS: &[Asked] = &[
    ("/exact", None),
    ("/exact?a=b", None),
    ("/redirect/x?a=b", None),
    ("/gone", None),
    ("/header", Some(("x-a", "1"))),
    ("/header", Some(("x-a", "2"))),
    ("/up/x", Some(("x-set", "s"))),
    ("/nothing", None),
];

/// Returns the bootstrap for a port of TCP and UDP and an upstream's port, with two certificates.
fn bootstrap(certificates: &Certificates, admin: u16, listen: u16, upstream: u16) -> Configuration {
    let mut text = BOOTSTRAP.to_owned();
    for (name, port) in [("ADMIN", admin), ("LISTEN", listen), ("UPSTREAM", upstream)] {
        text = text.replace(&format!("port_value: {name}"), &format!("port_value: {port}"));
    }
    for name in ["a", "b"] {
        let pair = certificates.rsa(2048, &[&format!("{name}.example")]);
        let upper = name.to_uppercase();
        text = text.replace(&format!("{upper}_CHAIN"), &pair.chain.display().to_string());
        text = text.replace(&format!("{upper}_KEY"), &pair.key.display().to_string());
    }
    Configuration::new(&text)
}

fn gateway(file: &Configuration) -> Gateway {
    let mut command = serve();
    command.arg("--envoy-config").arg(file.path());
    Gateway::start(command, 2)
}

fn connect(client: &mut Http3Client, name: &str, port: u16) -> Http3 {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut connection = client.begin_for(name, address, None);
    connection.run_until(name, Http3::is_established);
    connection
}

/// Returns the parts of a response that routes determine.
fn decided(answer: &Answer) -> String {
    let header = |name| answer.header(name).unwrap_or_default();
    let (location, added, upstream) = (header("location"), header("x-added"), header("x-upstream"));
    // Without a route, the gateway's own text is sent.
    let text = if answer.status == 404 { String::new() } else { answer.text() };
    format!("{} {location} {added} {upstream} {text}", answer.status)
}

fn ask(connection: &mut Http3, &(path, header): &Asked) -> String {
    let id = connection.start("GET", path, header.as_slice(), true);
    decided(&connection.finish(id))
}

#[test]
fn tcp_and_udp_are_served_beside_each_other() {
    let certificates = Certificates::new();
    let port = ports::free();
    let file = bootstrap(&certificates, 0, port, upstream::start().port());
    let gateway = gateway(&file);
    let client = &mut Http3Client::new(&certificates);
    let mut a = connect(client, "a.example", port);
    assert_eq!(ask(&mut a, &("/exact", None)), "200  added  exact");
    assert_eq!(ask(&mut a, &("/up/x", None)), "200  added u x-added=|x-set=|x-absent=|x-gone=");
    let mut b = connect(client, "b.example", port);
    assert_eq!(b.get_of("b.example", "/").text(), "b");
    let stranger = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    assert_eq!(client.begin_for("c.example", stranger, None).alert(), 112, "no chain has the name");
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--include", "--resolve", &format!("a.example:{port}:127.0.0.1")]);
    curl.arg("--cacert").arg(certificates.ca());
    let (_, said) = output(curl.arg(format!("https://a.example:{port}/")));
    assert!(said.contains("alt-svc: h3=\":443\"; ma=86400") && said.ends_with("tcp"), "{said}");
    let statistics = gateway.admin_page("/stats");
    for line in
        ["http.a.downstream_rq_2xx: 2", "http.b.downstream_rq_2xx: 1", "http.web.downstream_rq_2xx: 1"]
    {
        assert!(statistics.contains(line), "{line}\n{statistics}");
    }
    // Without the UDP listener, the TCP listener keeps serving.
    let text = std::fs::read_to_string(file.path()).expect("the file");
    let (before, rest) = text.split_once("  - name: web-quic").expect("the listener");
    let clusters = rest.split_once("  clusters:").expect("the clusters").1;
    file.replace(&format!("{before}  clusters:{clusters}"));
    gateway.signal("HUP");
    b.run_until("it receives no GOAWAY", |b| b.told_to_go);
    let mut curl = Command::new("curl");
    let (good, said) = output(curl.args(["-ks", &format!("https://127.0.0.1:{port}/")]));
    assert!(good && said == "tcp", "{said}");
}

#[test]
fn both_answer_the_same_way_over_quic() {
    let Some(program) = envoy() else {
        return skipped();
    };
    let certificates = Certificates::new();
    let upstream = upstream::start().port();
    let [ours, theirs] = [ports::free(), ports::free()];
    let [our_file, their_file] = [(0, ours), (ports::free(), theirs)]
        .map(|(admin, port)| bootstrap(&certificates, admin, port, upstream));
    let _gateway = gateway(&our_file);
    let _envoy = Envoy::start(&program, &their_file);
    eventually("Envoy does not serve", || std::net::TcpStream::connect(("127.0.0.1", theirs)).is_ok());
    let client = &mut Http3Client::new(&certificates);
    let mut differences = Vec::new();
    let mut connections = [ours, theirs].map(|port| connect(client, "a.example", port));
    for request in REQUESTS {
        let [ours, theirs] = connections.each_mut().map(|connection| ask(connection, request));
        if ours != theirs {
            differences.push(format!("{request:?}\n  Quadrille {ours}\n  Envoy     {theirs}"));
        }
    }
    let [b_ours, b_theirs] =
        [ours, theirs].map(|port| decided(&connect(client, "b.example", port).get_of("b.example", "/")));
    if b_ours != b_theirs {
        differences.push(format!("b.example\n  Quadrille {b_ours}\n  Envoy     {b_theirs}"));
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    for port in [ours, theirs] {
        assert!(!is_served(client, "c.example", port), "{port}: no chain has the name");
    }
}

/// Returns whether a handshake completes; Envoy does not respond to clients without a matching chain.
fn is_served(client: &mut Http3Client, name: &str, port: u16) -> bool {
    let mut connection = client.begin_for(name, SocketAddr::from((Ipv4Addr::LOCALHOST, port)), None);
    let end = Instant::now() + Duration::from_secs(3);
    while Instant::now() < end && !connection.is_established() && connection.quic().peer_error().is_none() {
        connection.turn();
        thread::yield_now();
    }
    connection.is_established()
}
