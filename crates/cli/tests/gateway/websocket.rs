//! WebSocket (RFC 6455) through the gateway, over TLS.

use crate::support::{
    Certificates, Configuration, Connector, Gateway, Nginx, accept_blocking, document, listener,
};
use std::net::SocketAddr;
use tungstenite::{Message, client::IntoClientRequest};

/// Echoes messages, and returns the received path in the handshake response.
fn echo_server() -> SocketAddr {
    accept_blocking(|tcp| {
        let mut socket = tungstenite::accept(tcp).expect("a WebSocket handshake");
        while let Ok(message) = socket.read() {
            if message.is_text() || message.is_binary() {
                socket.send(message).expect("echoing");
            }
        }
    })
}

#[test]
fn messages_pass_in_both_directions() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--upstream", &echo_server().to_string()]);
    let connector = Connector::new(&certificates);
    let mut sockets: Vec<_> = (0..4)
        .map(|_| {
            let tls = connector.tls(gateway.address(0)).expect("a TLS connection");
            let request = "wss://localhost/chat".into_client_request().expect("a request");
            tungstenite::client(request, tls).expect("a WebSocket handshake").0
        })
        .collect();
    let large: Vec<u8> = (0..1_000_000_u32).map(|index| index.to_le_bytes()[0]).collect();
    for round in 0..3 {
        for (index, socket) in sockets.iter_mut().enumerate() {
            let text = Message::text(format!("{round} {index}"));
            socket.send(text.clone()).expect("sending");
            assert_eq!(socket.read().expect("an echo"), text);
        }
    }
    for mut socket in sockets {
        let binary = Message::binary(large.clone());
        socket.send(binary.clone()).expect("sending");
        assert!(socket.read().expect("an echo") == binary);
        socket.close(None).expect("closing");
        while socket.read().is_ok() {}
    }
}

#[test]
fn a_refused_upgrade_is_an_ordinary_answer() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let nginx = Nginx::new("return 403 no;");
    let gateway = Gateway::with_flags(&pair, &["--upstream", &nginx.address().to_string()]);
    let tls = Connector::new(&certificates).tls(gateway.address(0)).expect("a TLS connection");
    match tungstenite::client("wss://localhost/chat", tls) {
        Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(response))) => {
            assert_eq!(response.status().as_u16(), 403);
        }
        other => panic!("{other:?}"),
    }
}

/// A body of the handshake request would not be read after the upgrade.
#[test]
fn a_handshake_has_no_body() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let gateway = Gateway::with_flags(&pair, &["--upstream", &echo_server().to_string()]);
    for body in ["Content-Length: 100000\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n"] {
        let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
        let head = "GET /chat HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
        client.send(format!("{head}{body}").as_bytes()).expect("sending");
        assert_eq!(client.response().expect("a response").status, 400, "{body}");
        assert!(client.is_closed(), "{body}");
    }
}

/// Each WebSocket uses a separate upstream connection, and only the first has a full handshake.
#[test]
fn sockets_to_a_server_with_tls_resume() {
    let certificates = Certificates::new();
    let origin = certificates.rsa(2048, &["origin.example"]);
    let nginx = Nginx::listening(
        "ssl",
        &format!(
            "ssl_certificate {}; ssl_certificate_key {}; ssl_protocols TLSv1.2 TLSv1.3;
             add_header Resumed \"$ssl_session_reused\" always; proxy_http_version 1.1;
             location / {{
                 proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade;
                 proxy_pass http://{};
             }}",
            origin.chain.display(),
            origin.key.display(),
            echo_server()
        ),
    );
    let tls = format!("tls: {{server_name: origin.example, ca: {}}}", certificates.ca().display());
    let upstreams = format!("web: {{servers: [\"{}\"], {tls}}}", nginx.address());
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let connector = Connector::new(&certificates);
    let mut resumed = String::new();
    for _ in 0..4 {
        let tls = connector.tls(gateway.address(0)).expect("a TLS connection");
        let (mut socket, answer) = tungstenite::client("wss://localhost/chat", tls)
            .unwrap_or_else(|error| panic!("a WebSocket handshake: {error}\n{}", gateway.log()));
        resumed += answer.headers()["resumed"].to_str().expect("r or a dot");
        socket.send(Message::text("hello")).expect("sending");
        assert_eq!(socket.read().expect("an echo"), Message::text("hello"));
    }
    assert_eq!(resumed, ".rrr", "{}", gateway.log());
}
