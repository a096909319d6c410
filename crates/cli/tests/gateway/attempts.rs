//! Retries of a request whose earlier attempt has not been sent completely.

use crate::support::{
    Certificates, Client, Configuration, Connector, Gateway, PATIENCE, document, eventually,
    frames::{DATA, Frames, HEADERS},
    listener, ports,
};
use h2::{RecvStream, server::SendResponse};
use std::{
    io::Cursor,
    net::{SocketAddr, TcpListener},
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{Receiver, channel},
    },
    thread,
    time::Duration,
};
use tokio::sync::Notify;

const PIECE: usize = 8 << 10;

type Respond = SendResponse<Cursor<Vec<u8>>>;

/// Starts an HTTP/2 server with this window for each stream and this handler for requests.
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

/// Starts an HTTP/2 server with this handler for connections.
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

/// Starts a gateway in front of this server, which retries rejected requests, and connects to it.
fn before(server: SocketAddr, certificates: &Certificates) -> (Gateway, Configuration, Client) {
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let routes = "routes: [{upstream: web, retry: {on: [503], idempotent_only: off}}]";
    let upstreams = format!("web: {{servers: ['{server}'], protocol: http2}}");
    let file = Configuration::new(&document(&[listener(&pair, routes)], &upstreams));
    let gateway = Gateway::with_config(&file.path(), 1);
    let mut client = Connector::new(certificates).http(gateway.address(0)).expect("a connection");
    // After this, the gateway knows the server's window.
    assert_eq!(client.get("/").expect("a response").status, 200);
    (gateway, file, client)
}

/// Responds with this status before the body arrives, and continues reading once it is notified. Returns the data
/// read.
async fn answer_early(
    status: u16,
    body: RecvStream,
    mut respond: Respond,
    read_on: Arc<Notify>,
) -> Result<Vec<u8>, h2::Error> {
    let response = http::Response::builder().status(status).body(()).expect("a response");
    respond.send_response(response, true).expect("sending");
    read_on.notified().await;
    read(body).await
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
    // Larger than the window.
    const FIRST: usize = 3;
    // Larger than the buffer for retries.
    const PIECES: usize = 25;
    let (second, begun) = channel();
    // The window that the first attempt's server opens then wakes that attempt's sender, though another one sends the
    // body by now.
    let read_on = Arc::new(Notify::new());
    let mut attempts = 0;
    let server = server(PIECE, move |request, respond| {
        attempts += usize::from(request.method() == http::Method::PUT);
        if attempts == 1 {
            drop(tokio::spawn(answer_early(503, request.into_body(), respond, Arc::clone(&read_on))));
            return;
        }
        if attempts > 1 {
            read_on.notify_one();
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
            begun.recv_timeout(PATIENCE).expect("a second attempt");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let response = client.response().expect("a response");
    assert_eq!(response.status, 200, "{}", gateway.log());
    assert!(response.body == body, "{} bytes of {}", response.body.len(), body.len());
}

/// Between the decision to retry and the retry, the server that has rejected the request accepts more of its body
/// than is buffered.
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
        let first = is_refused.recv_timeout(PATIENCE);
        assert!(first.is_ok(), "{round}: no first attempt\n{}", gateway.log());
        // A rejection may close the connection before the whole body is sent.
        let sent = client.send(&vec![b'b'; LENGTH - PIECE]);
        let response = client.response().expect("a response");
        // The server may have accepted too much before the gateway received the rejection.
        if response.status == 503 {
            client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
            continue;
        }
        sent.expect("sending");
        assert_eq!((response.status, response.body.len()), (200, LENGTH), "{round}: {}", gateway.log());
        assert!(response.body.starts_with(&[b'a'; PIECE]), "{round}: another beginning");
    }
}

/// The end of an exchange also ends its stream to the server, which would continue reading.
#[test]
fn the_rest_of_a_body_is_not_a_request() {
    let ((asked, paths), (ended, has_ended)) = (channel(), channel());
    let read_on = Arc::new(Notify::new());
    let is_answered = Arc::clone(&read_on);
    let server = server(1 << 20, move |request, respond| {
        let path = request.uri().path().to_owned();
        asked.send(path.clone()).expect("the test");
        if path != "/upload" {
            drop(tokio::spawn(echo(request.into_body(), respond)));
            return;
        }
        let (ended, read_on) = (ended.clone(), Arc::clone(&read_on));
        tokio::spawn(async move {
            let whole = answer_early(200, request.into_body(), respond, read_on).await;
            ended.send(whole.is_ok()).expect("the test");
        });
    });
    let certificates = Certificates::new();
    let (gateway, _file, mut client) = before(server, &certificates);
    client
        .send(b"POST /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegin")
        .expect("sending");
    assert_eq!(client.response().expect("an early response").status, 200);
    is_answered.notify_one();
    let is_whole = has_ended.recv_timeout(PATIENCE).expect("the connection to the server continues reading");
    assert!(!is_whole, "{}", gateway.log());
    let _ = client.send(b"GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let second = client.response();
    assert!(second.is_err(), "{:?}\n{}", second.map(|response| response.status), gateway.log());
    // The server receives requests in order.
    let mut other = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
    assert_eq!(other.get("/last").expect("a response").status, 200);
    let asked: Vec<_> = paths.try_iter().collect();
    assert_eq!(asked, ["/", "/upload", "/last"]);
}

/// The server is notified that the body ends, even if only the response has ended it.
#[test]
fn a_server_that_has_answered_early_does_not_wait_for_the_rest() {
    let (ended, told) = channel();
    let end = Arc::new(Notify::new());
    let has_begun = Arc::clone(&end);
    let server = server(1 << 20, move |request, mut respond: Respond| {
        let (ended, end) = (ended.clone(), Arc::clone(&end));
        tokio::spawn(async move {
            let (is_upload, body) = (request.uri().path() == "/upload", request.into_body());
            let mut stream = respond.send_response(http::Response::new(()), false).expect("sending");
            if is_upload {
                end.notified().await;
            }
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
    has_begun.notify_one();
    let told = told.recv_timeout(PATIENCE).expect("it still waits");
    assert_eq!(told, Err(Some(h2::Reason::CANCEL)), "{}", gateway.log());
}

/// A server whose first connection serves one request and stops reading once it is notified, as if a firewall had
/// dropped it. Other connections are served.
struct Forgetful {
    address: SocketAddr,
    forget: Arc<Notify>,
    forgotten: Receiver<()>,
    /// Number of requests on connections other than the first.
    others: Arc<AtomicUsize>,
}

impl Forgetful {
    fn new() -> Self {
        let (forget, others) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
        let (forgets, forgotten) = channel();
        let (told, asked) = (Arc::clone(&forget), Arc::clone(&others));
        let mut is_first = true;
        let address = connections(1 << 16, move |mut connection| {
            let is_first = std::mem::replace(&mut is_first, false);
            let (told, asked, forgets) = (Arc::clone(&told), Arc::clone(&asked), forgets.clone());
            async move {
                if is_first {
                    let Some(Ok((request, respond))) = connection.accept().await else { return };
                    tokio::spawn(echo(request.into_body(), respond));
                    // The response is sent.
                    tokio::select! {
                        () = told.notified() => {}
                        _ = connection.accept() => panic!("a request arrives too early"),
                    }
                    forgets.send(()).expect("the test");
                    std::future::pending::<()>().await;
                }
                while let Some(Ok((request, respond))) = connection.accept().await {
                    asked.fetch_add(1, Ordering::SeqCst);
                    tokio::spawn(echo(request.into_body(), respond));
                }
            }
        });
        Self { address, forget, forgotten, others }
    }
}

#[test]
fn a_connection_that_has_fallen_silent_is_asked_once() {
    let certificates = Certificates::new();
    let pair = certificates.ecdsa("P-256", &["localhost"]);
    let mut setting = None;
    // On a busy machine, the first response may be late; an abandoned connection is not the one that stops
    // responding.
    eventually("no response in time", || {
        let server = Forgetful::new();
        let keys = "protocol: http2, retries: 0, timeouts: {read: 1s}";
        let upstreams = format!("web: {{servers: ['{}'], {keys}}}", server.address);
        let file = Configuration::new(&document(&[listener(&pair, "upstream: web")], &upstreams));
        let gateway = Gateway::with_config(&file.path(), 1);
        let mut client = Connector::new(&certificates).http(gateway.address(0)).expect("a connection");
        let is_in_time = client.get("/").expect("a response").status == 200;
        setting = is_in_time.then_some((server, file, gateway, client));
        is_in_time
    });
    let (server, _file, gateway, mut client) = setting.expect("a server in time");
    let mut status = || client.get("/").expect("a response").status;
    server.forget.notify_one();
    server.forgotten.recv_timeout(PATIENCE).expect("the server");
    assert_eq!(status(), 504, "{}", gateway.log());
    // On a busy machine, these may be late too: the test checks only their connection.
    for count in 1..=2 {
        let status = status();
        assert!([200, 504].contains(&status), "{status}");
        eventually("the connection receives another request", || {
            server.others.load(Ordering::SeqCst) == count
        });
    }
    eventually("no response in time", || status() == 200);
}
