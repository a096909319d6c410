//! Attempts to send one request, of which an earlier one's server has not heard enough.

use crate::support::{Certificates, Configuration, Connector, Gateway, document, listener, ports};
use h2::{RecvStream, server::SendResponse};
use std::{
    io::Cursor,
    net::{SocketAddr, TcpListener},
    sync::mpsc::{Sender, channel},
    thread,
    time::Duration,
};

const PIECE: usize = 8 << 10;

/// A server of HTTP/2 that refuses the first PUT before its body has come, and reads on. It says when the second one
/// comes, and answers with its body.
fn early_then_patient(second: Sender<()>) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            let (stream, _) = listener.accept().await.expect("a connection");
            let mut connection = h2::server::Builder::new()
                .initial_window_size(PIECE as u32)
                .handshake(stream)
                .await
                .expect("HTTP/2");
            let mut attempts = 0;
            while let Some(Ok((request, respond))) = connection.accept().await {
                attempts += usize::from(request.method() == http::Method::PUT);
                match attempts {
                    0 => drop(tokio::spawn(echo(request.into_body(), respond))),
                    1 => drop(tokio::spawn(refuse(request.into_body(), respond))),
                    _ => {
                        second.send(()).expect("the test");
                        tokio::spawn(echo(request.into_body(), respond));
                    }
                }
            }
        });
    });
    address
}

async fn refuse(body: RecvStream, mut respond: SendResponse<Cursor<Vec<u8>>>) {
    let response = http::Response::builder().status(503).body(()).expect("a response");
    respond.send_response(response, true).expect("sending");
    // The window that opens then wakes whoever sends this body, though another does by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let _ = read(body).await;
}

async fn echo(body: RecvStream, mut respond: SendResponse<Cursor<Vec<u8>>>) {
    let Ok(body) = read(body).await else { return };
    let mut stream = respond.send_response(http::Response::new(()), false).expect("sending");
    stream.send_data(Cursor::new(body), true).expect("sending");
}

async fn read(mut body: RecvStream) -> Result<Vec<u8>, h2::Error> {
    let mut whole = Vec::new();
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

#[test]
fn the_newest_has_all_of_the_body() {
    // More than fits the window.
    const FIRST: usize = 3;
    // More than is buffered for another attempt.
    const PIECES: usize = 25;
    let (second, begun) = channel();
    let server = early_then_patient(second);
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let routes = "routes: [{upstream: web, retry: {on: [503], idempotent_only: off}}]";
    let upstreams = format!("web: {{servers: ['{server}'], protocol: http2}}");
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    // By then, the gateway knows the server's window.
    assert_eq!(client.get("/").expect("an answer").status, 200);
    let body: Vec<u8> = (0..PIECE * PIECES).map(|index| b'a' + (index / PIECE) as u8).collect();
    let head = format!("PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    client.send(head.as_bytes()).expect("sending");
    for (index, piece) in body.chunks(PIECE).enumerate() {
        client.send(piece).expect("sending");
        if index + 1 == FIRST {
            begun.recv_timeout(Duration::from_secs(20)).expect("a second attempt");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let response = client.response().expect("an answer");
    assert_eq!(response.status, 200, "{}", gateway.log());
    assert!(response.body == body, "{} bytes of {}", response.body.len(), body.len());
}
