//! Recipes of applications.

use super::{Recipe, response};
use crate::{
    grpc,
    support::{Connector, accept_blocking, echo_server, eventually},
};
use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
};
use tungstenite::{Message, client::IntoClientRequest};

#[test]
fn wordpress_is_served() {
    let app = echo_server().to_string();
    let recipe = Recipe::new("applications", "WordPress", &[("127.0.0.1:8080", &app)]);
    let _gateway = recipe.serve();
    recipe.run(..);
    let seen = recipe.curl(&["-i", "https://example.com/"]).to_lowercase();
    assert!(seen.contains("\nx-forwarded-proto: https\n"), "{seen}");
    for line in ["strict-transport-security: max-age=", "x-content-type-options: nosniff"] {
        assert!(seen.contains(&format!("\n{line}")), "{line}: {seen}");
    }
    let login = ["-X", "POST", "https://example.com/wp-login.php"];
    assert_eq!(recipe.status(&login), "200");
    eventually("logins are not limited", || recipe.status(&login) == "429");
    assert_eq!(recipe.status(&["https://example.com/wp-login.php"]), "200", "the form is not limited");
}

#[test]
fn grafana_is_served_with_websocket() {
    let grafana = grafana().to_string();
    let recipe = Recipe::new("applications", "Grafana with WebSocket", &[("127.0.0.1:3000", &grafana)]);
    let gateway = recipe.serve();
    let server = format!("server=\"{grafana}\"");
    gateway.wait_for_metric("quadrille_upstream_server_up", &[&server], |up| up == 1.0);
    recipe.run(..);
    let tcp = TcpStream::connect(gateway.address(0)).expect("a connection");
    let tls = Connector::new(&recipe.certificates).named("example.com", tcp).expect("a TLS connection");
    let request = "wss://example.com/grafana/api/live/ws".into_client_request().expect("a request");
    let (mut socket, _) = tungstenite::client(request, tls).expect("a WebSocket handshake");
    for index in 0..3 {
        let text = Message::text(format!("panel {index}"));
        socket.send(text.clone()).expect("sending");
        assert_eq!(socket.read().expect("an echo"), text);
    }
}

/// Starts a server below `/grafana` that responds to requests, and echoes the messages of WebSockets.
fn grafana() -> SocketAddr {
    accept_blocking(serve)
}

fn serve(mut tcp: TcpStream) -> Option<()> {
    let mut head = vec![0; 16 * 1024];
    let text = loop {
        let read = tcp.peek(&mut head).ok().filter(|read| *read > 0)?;
        let text = String::from_utf8_lossy(&head[..read]).to_lowercase();
        if text.contains("\r\n\r\n") {
            break text;
        }
        thread::yield_now();
    };
    if text.contains("\r\nupgrade: websocket\r\n") && text.starts_with("get /grafana/api/live/ws ") {
        let mut socket = tungstenite::accept(tcp).ok()?;
        while let Ok(message) = socket.read() {
            socket.send(message).ok()?;
        }
        return None;
    }
    let length = text.find("\r\n\r\n")? + 4;
    tcp.read_exact(&mut head[..length]).ok()?;
    let status = if text.starts_with("get /grafana/") { "200 OK" } else { "404 Not Found" };
    tcp.write_all(response(status, "", "grafana").as_bytes()).ok()
}

#[test]
fn grpc_is_served() {
    let (first, second) = (grpc::Server::start(None), grpc::Server::start(None));
    let address = |server: &Option<grpc::Server>| {
        server.as_ref().map_or("127.0.0.1:1".to_owned(), |server| server.address.to_string())
    };
    let addresses = [address(&first), address(&second)];
    let replaced = [
        ("10.0.0.1:50051", &*addresses[0]),
        ("10.0.0.2:50051", &*addresses[1]),
        ("interval: 2s", "interval: 50ms, timeout: 10s"),
    ];
    let recipe = Recipe::new("applications", "gRPC", &replaced);
    let gateway = recipe.serve();
    recipe.run(..);
    if first.is_some() {
        grpc::pass(&gateway, &recipe.certificates, &["empty_unary", "client_streaming", "ping_pong"]);
    }
}
