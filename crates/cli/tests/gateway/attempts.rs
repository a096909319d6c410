//! Attempts to send one request, of which an earlier one's server has not heard enough.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, document,
    frames::{DATA, Frames, HEADERS},
    listener, ports,
};
use h2::{RecvStream, server::SendResponse};
use std::{
    io::Cursor,
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex, mpsc::channel},
    thread,
    time::Duration,
};

const PIECE: usize = 8 << 10;

type Respond = SendResponse<Cursor<Vec<u8>>>;

/// A server of HTTP/2 with this window for each stream, which does this with each request.
fn server(
    window: usize,
    serve: impl FnMut(http::Request<RecvStream>, Respond) + Send + 'static,
) -> SocketAddr {
    let serve = Arc::new(Mutex::new(serve));
    connections(window, move |mut connection| {
        let serve = Arc::clone(&serve);
        async move {
            while let Some(Ok((request, respond))) = connection.accept().await {
                (serve.lock().expect("the test"))(request, respond);
            }
        }
    })
}

type ServerConnection = h2::server::Connection<tokio::net::TcpStream, Cursor<Vec<u8>>>;

/// A server of HTTP/2 that does this with each connection.
fn connections<F: Future<Output = ()> + Send + 'static>(
    window: usize,
    mut converse: impl FnMut(ServerConnection) -> F + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind(("127.0.0.1", ports::free())).expect("a port");
    let address = listener.local_addr().expect("an address");
    listener.set_nonblocking(true).expect("a socket");
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
            while let Ok((stream, _)) = listener.accept().await {
                let mut builder = h2::server::Builder::new();
                builder.initial_window_size(window as u32);
                tokio::spawn(converse(builder.handshake(stream).await.expect("HTTP/2")));
            }
        });
    });
    address
}

/// A gateway before this server, which tries a refused request again, and a connection to it.
fn before(server: SocketAddr, certificates: &Certificates) -> (Gateway, Configuration, Client) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let routes = "routes: [{upstream: web, retry: {on: [503], idempotent_only: off}}]";
    let upstreams = format!("web: {{servers: ['{server}'], protocol: http2}}");
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Connector::new(certificates).http(gateway.address(0)).expect("a connection");
    // By then, the gateway knows the server's window.
    assert_eq!(client.get("/").expect("an answer").status, 200);
    (gateway, file, client)
}

/// Answers with this status before the body has come, and reads on.
async fn answer_early(status: u16, body: RecvStream, mut respond: Respond) {
    let response = http::Response::builder().status(status).body(()).expect("a response");
    respond.send_response(response, true).expect("sending");
    // The window that opens then wakes whoever sends this body, though another does by now.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let _ = read(body).await;
}

async fn echo(body: RecvStream, mut respond: Respond) {
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
    let mut attempts = 0;
    let server = server(PIECE, move |request, respond| {
        attempts += usize::from(request.method() == http::Method::PUT);
        if attempts == 1 {
            tokio::spawn(answer_early(503, request.into_body(), respond));
            return;
        }
        if attempts > 1 {
            second.send(()).expect("the test");
        }
        tokio::spawn(echo(request.into_body(), respond));
    });
    let certificates = Certificates::new();
    let (gateway, _file, mut client) = before(server, &certificates);
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

/// While it is decided that a request is sent again, and until it is, the server that has refused it takes more of its body
/// than is remembered.
#[test]
fn none_begins_with_a_body_of_which_the_beginning_is_gone() {
    const LENGTH: usize = 200 << 10;
    let (refused, is_refused) = channel();
    let mut seen = std::collections::HashSet::from(["/".to_owned()]);
    let server = server(1 << 20, move |request, respond| {
        if !seen.insert(request.uri().path().to_owned()) {
            drop(tokio::spawn(echo(request.into_body(), respond)));
            return;
        }
        let refused = refused.clone();
        tokio::spawn(async move {
            let (body, mut respond) = (request.into_body(), respond);
            let response = http::Response::builder().status(503).body(()).expect("a response");
            respond.send_response(response, true).expect("sending");
            refused.send(()).expect("the test");
            let _ = read(body).await;
        });
    });
    let certificates = Certificates::new();
    let (gateway, _file, mut client) = before(server, &certificates);
    // The time between two attempts is random.
    for round in 0..20 {
        let head = format!("PUT /{round} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {LENGTH}\r\n\r\n");
        client.send(head.as_bytes()).expect("sending");
        client.send(&[b'a'; PIECE]).expect("sending");
        let first = is_refused.recv_timeout(Duration::from_secs(20));
        assert!(first.is_ok(), "{round}: no first attempt\n{}", gateway.log());
        client.send(&vec![b'b'; LENGTH - PIECE]).expect("sending");
        let response = client.response().expect("an answer");
        // It may have taken too much before it was known that it refuses.
        if response.status == 503 {
            client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
            continue;
        }
        assert_eq!((response.status, response.body.len()), (200, LENGTH), "{round}: {}", gateway.log());
        assert!(response.body.starts_with(&[b'a'; PIECE]), "{round}: another beginning");
    }
}

/// An exchange that is over is over for the connection to the server, too, which would read on.
#[test]
fn what_is_left_of_a_body_is_no_request() {
    let (asked, paths) = channel();
    let server = server(1 << 20, move |request, respond| {
        asked.send(request.uri().path().to_owned()).expect("the test");
        tokio::spawn(answer_early(200, request.into_body(), respond));
    });
    let certificates = Certificates::new();
    let (gateway, _file, mut client) = before(server, &certificates);
    client
        .send(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegin")
        .expect("sending");
    assert_eq!(client.response().expect("an early answer").status, 200);
    thread::sleep(Duration::from_millis(400));
    let _ = client.send(b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let second = client.response();
    assert!(second.is_err(), "{:?}\n{}", second.map(|response| response.status), gateway.log());
    let asked: Vec<_> = paths.try_iter().collect();
    assert_eq!(asked, ["/", "/upload"]);
}

/// The server is told that no more of the body comes, also where nobody but the response has ended it.
#[test]
fn a_server_that_has_answered_early_does_not_wait_for_the_rest() {
    let (ended, told) = channel();
    let server = server(1 << 20, move |request, mut respond: Respond| {
        let ended = ended.clone();
        tokio::spawn(async move {
            let (is_upload, body) = (request.uri().path() == "/upload", request.into_body());
            let mut stream = respond.send_response(http::Response::new(()), false).expect("sending");
            tokio::time::sleep(Duration::from_millis(100)).await;
            stream.send_data(Cursor::new(b"early".to_vec()), true).expect("sending");
            if is_upload {
                let whole = read(body).await.map(|body| body.len());
                ended.send(whole.map_err(|error| error.reason())).expect("the test");
            }
        });
    });
    let certificates = Certificates::new();
    let (gateway, _file, _client) = before(server, &certificates);
    let mut frames = Frames::connect(&Connector::new(&certificates), gateway.address(0), 65_535);
    frames.post(1, "/upload");
    frames.send(DATA, 0, 1, b"begin");
    assert_eq!(frames.expect(HEADERS).stream, 1);
    let told = told.recv_timeout(Duration::from_secs(5)).expect("it still waits");
    assert_eq!(told, Err(Some(h2::Reason::CANCEL)), "{}", gateway.log());
}

/// A server whose first connection answers one request and then nothing, as if a firewall had forgotten it. Others answer.
fn forgotten_after_one_request() -> SocketAddr {
    let mut requests = 1;
    connections(1 << 16, move |mut connection| {
        let most = std::mem::replace(&mut requests, usize::MAX);
        async move {
            for _ in 0..most {
                let Some(Ok((request, respond))) = connection.accept().await else { return };
                tokio::spawn(echo(request.into_body(), respond));
            }
            // What it has said goes out, and nothing is read any more.
            let written = tokio::time::timeout(Duration::from_millis(200), connection.accept()).await;
            assert!(written.is_err(), "a request comes too early");
            tokio::time::sleep(Duration::from_secs(30)).await;
        }
    })
}

#[test]
fn a_connection_that_has_fallen_silent_is_asked_once() {
    let server = forgotten_after_one_request();
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let upstreams =
        format!("web: {{servers: ['{server}'], protocol: http2, retries: 0, timeouts: {{read: 1s}}}}");
    let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    let mut status = || client.get("/").expect("an answer").status;
    let first = status();
    thread::sleep(Duration::from_millis(400));
    let statuses = [first, status(), status(), status()];
    assert_eq!(statuses, [200, 504, 200, 200], "{}", gateway.log());
}
