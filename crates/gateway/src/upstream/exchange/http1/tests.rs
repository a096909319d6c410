//! Tests of exchanges with scripted servers, over real sockets.

use super::*;
use crate::upstream::{
    connect::connector::ServerStream,
    exchange::{error::ClientBodyError, request_body::BoxError},
};
use bytes::Bytes;
use http::Version;
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Collected, StreamBody};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// A pool that records a returned connection.
#[derive(Default)]
struct Pool(Mutex<Option<Box<Http1Connection>>>);

impl Shelf for Pool {
    fn put_back(&self, connection: Box<Http1Connection>) {
        *self.0.lock().unwrap() = Some(connection);
    }

    fn closed(&self, _: &PeerKey) {}
}

impl Pool {
    fn take(&self) -> Option<Box<Http1Connection>> {
        self.0.lock().unwrap().take()
    }
}

/// Returns a connection, and the server's end of it.
async fn connection(pool: &Arc<Pool>) -> (Box<Http1Connection>, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (server, _) = listener.accept().await.unwrap();
    let (pool, key): (Weak<Pool>, _) = (Arc::downgrade(pool), PeerKey::of_host(""));
    (Http1Connection::new(ServerStream::Plain(stream), Place { pool, key }), server)
}

fn limits() -> Limits {
    let long = Duration::from_secs(60);
    Limits { read: long, write: long, header: None, whole: None }
}

fn get() -> Request<RequestBody> {
    Request::get("/a?b").header("host", "example.org").body(RequestBody::default()).unwrap()
}

/// Returns a request whose body consists of these frames, without a known length.
fn post(frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Request<RequestBody> {
    let body = StreamBody::new(futures_util::stream::iter(frames));
    let body = RequestBody::new(Box::pin(body));
    Request::post("/").header("host", "example.org").body(body).unwrap()
}

async fn exchange(
    connection: Box<Http1Connection>,
    request: Request<RequestBody>,
) -> Result<Response<Http1Body>, ExchangeError> {
    connection.send(request, limits(), |_, _| ()).await
}

/// Reads at the server until the received data ends with `end`.
async fn received(server: &mut TcpStream, end: &str) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(end.as_bytes()) {
        assert!(server.read_buf(&mut bytes).await.unwrap() > 0, "{}", String::from_utf8_lossy(&bytes));
    }
    String::from_utf8(bytes).unwrap()
}

#[tokio::test]
async fn a_connection_carries_one_exchange_after_another() {
    let pool = Arc::<Pool>::default();
    let (mut connection, mut server) = connection(&pool).await;
    for text in ["one", "two"] {
        let sending = exchange(connection, get());
        let serving = async {
            let request = received(&mut server, "\r\n\r\n").await;
            assert_eq!(request, "GET /a?b HTTP/1.1\r\nhost: example.org\r\n\r\n");
            let response = format!("HTTP/1.1 200 OK\r\ncontent-length: 3\r\nx: y\r\n\r\n{text}");
            server.write_all(response.as_bytes()).await.unwrap();
        };
        let (response, ()) = tokio::join!(sending, serving);
        let response = response.unwrap();
        assert_eq!(response.headers()["x"], "y");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), text);
        connection = pool.take().expect("the connection was returned");
    }
}

#[tokio::test]
async fn bodies_go_both_ways_in_chunks_with_trailers() {
    let pool = Arc::<Pool>::default();
    let (connection, mut server) = connection(&pool).await;
    let large = Bytes::from(vec![b'x'; 100_000]);
    let trailers = [("a", "1"), ("content-length", "5")]
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
    let request = post(vec![
        Ok(Frame::data(Bytes::from_static(b"small"))),
        Ok(Frame::data(Bytes::new())),
        Ok(Frame::data(large.clone())),
        Ok(Frame::trailers(HeaderMap::from_iter(trailers))),
    ]);
    let serving = async {
        let request = received(&mut server, "0\r\na: 1\r\n\r\n").await;
        let expected = format!(
            "POST / HTTP/1.1\r\nhost: example.org\r\ntransfer-encoding: chunked\r\n\r\n\
             5\r\nsmall\r\n186a0\r\n{}\r\n0\r\na: 1\r\n\r\n",
            str::from_utf8(&large).unwrap()
        );
        assert!(request == expected, "{}", request.len());
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n186a0\r\n";
        server.write_all(&[head.as_bytes(), &large, b"\r\n0\r\nb: 2\r\n\r\n"].concat()).await.unwrap();
    };
    let (body, ()) = tokio::join!(
        async { exchange(connection, request).await.unwrap().collect().await.unwrap() },
        serving
    );
    assert_eq!(body.trailers().unwrap()["b"], "2");
    assert!(body.to_bytes() == large);
    assert!(pool.take().is_some());
}

#[tokio::test]
async fn a_body_has_the_length_that_was_announced() {
    let pool = Arc::<Pool>::default();
    for (length, is_whole) in [(5, true), (4, false), (6, false)] {
        let (connection, mut server) = connection(&pool).await;
        let mut request = post(vec![Ok(Frame::data(Bytes::from_static(b"hello")))]);
        *request.body_mut() =
            RequestBody::new(Box::pin(Announced(length, Some(Bytes::from_static(b"hello")))));
        request.headers_mut().insert("content-length", "77".parse().unwrap());
        let serving = async {
            if is_whole {
                let request = received(&mut server, "hello").await;
                assert!(
                    request.contains("\r\ncontent-length: 5\r\n") && !request.contains("77"),
                    "{request}"
                );
                server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
        };
        let (response, ()) = tokio::join!(exchange(connection, request), serving);
        match response {
            Ok(response) => assert!(is_whole && response.body().is_end_stream()),
            Err(error) => assert!(!is_whole && matches!(error, ExchangeError::Client(_)), "{error}"),
        }
    }
}

/// A body that announces its length.
struct Announced(u64, Option<Bytes>);

impl Body for Announced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Poll::Ready(self.1.take().map(|data| Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(self.0)
    }
}

#[tokio::test]
async fn informational_responses_come_before_the_last() {
    let pool = Arc::<Pool>::default();
    let (connection, mut server) = connection(&pool).await;
    let seen = Mutex::new(Vec::new());
    let sending = connection.send(get(), limits(), |status, headers| {
        seen.lock().unwrap().push((status.as_u16(), headers.len()));
    });
    let early =
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n";
    server.write_all(early.as_bytes()).await.unwrap();
    let rest = async { server.write_all(b"content-length: 0\r\n\r\n").await.unwrap() };
    let (response, ()) = tokio::join!(sending, rest);
    assert_eq!(response.unwrap().status(), 200);
    assert_eq!(*seen.lock().unwrap(), [(100, 0), (103, 1)]);
}

#[tokio::test]
async fn a_connection_that_cannot_carry_another_exchange_is_closed() {
    for response in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
        "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    ] {
        let pool = Arc::<Pool>::default();
        let (connection, mut server) = connection(&pool).await;
        server.write_all(response.as_bytes()).await.unwrap();
        let body = exchange(connection, get()).await.unwrap().collect().await.unwrap().to_bytes();
        assert_eq!(body, "ok");
        assert!(pool.take().is_none(), "{response:?}");
    }
}

#[tokio::test]
async fn a_body_may_end_with_the_connection_only_if_nothing_else_ends_it() {
    for (response, body) in [
        ("HTTP/1.1 200 OK\r\n\r\nall", Some("all")),
        ("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nall", None),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nall\r\n", None),
    ] {
        let pool = Arc::<Pool>::default();
        let (connection, mut server) = connection(&pool).await;
        server.write_all(response.as_bytes()).await.unwrap();
        server.shutdown().await.unwrap();
        let collected = exchange(connection, get()).await.unwrap().collect().await;
        assert_eq!(collected.ok().map(Collected::to_bytes), body.map(Bytes::from), "{response:?}");
        assert!(pool.take().is_none());
    }
}

#[tokio::test]
async fn a_server_may_answer_before_it_has_the_request() {
    let pool = Arc::<Pool>::default();
    let (connection, mut server) = connection(&pool).await;
    let (sender, mut frames) = tokio::sync::mpsc::unbounded_channel();
    let body = StreamBody::new(futures_util::stream::poll_fn(move |context| frames.poll_recv(context)));
    let request = Request::post("/").body(RequestBody::new(Box::pin(body))).unwrap();
    server.write_all(b"HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let response = exchange(connection, request).await.unwrap();
    assert_eq!(response.status(), 413);
    assert!(pool.take().is_none(), "the server would read the rest of the request as another one");
    let unsent: Result<Frame<Bytes>, BoxError> = Ok(Frame::data(Bytes::new()));
    assert!(sender.send(unsent).is_ok(), "the client was still sending");
}

#[tokio::test]
async fn an_error_tells_what_was_sent() {
    let pool = Arc::<Pool>::default();
    let (connection, server) = connection(&pool).await;
    drop(server);
    let broken = exchange(connection, get()).await.map(drop).unwrap_err();
    assert!(matches!(broken, ExchangeError::Broken(_) | ExchangeError::NotSent), "{broken}");
    let (connection, _server) = self::connection(&pool).await;
    let lost = post(vec![Err(Box::new(ClientBodyError::TimedOut))]);
    let error = exchange(connection, lost).await.map(drop).unwrap_err();
    assert!(matches!(error, ExchangeError::Client(ClientBodyError::TimedOut)), "{error}");
    let (connection, mut server) = self::connection(&pool).await;
    server
        .write_all(&[b"HTTP/1.1 200 OK\r\nx: ".as_slice(), &[b'x'; 100_000], b"\r\n\r\n"].concat())
        .await
        .unwrap();
    let error = exchange(connection, get()).await.map(drop).unwrap_err();
    assert!(error.to_string().contains("the header is too large"), "{error}");
}

#[tokio::test]
async fn http_1_0_has_neither_chunks_nor_a_second_exchange() {
    let pool = Arc::<Pool>::default();
    let (connection, _server) = connection(&pool).await;
    let mut request = post(vec![Ok(Frame::data(Bytes::from_static(b"GET /another HTTP/1.0")))]);
    *request.version_mut() = Version::HTTP_10;
    let error = exchange(connection, request).await.map(drop).unwrap_err();
    assert!(matches!(error, ExchangeError::Client(_)), "{error}");
    let (connection, mut server) = self::connection(&pool).await;
    let mut request = get();
    *request.version_mut() = Version::HTTP_10;
    let serving = async {
        assert!(received(&mut server, "\r\n\r\n").await.starts_with("GET /a?b HTTP/1.0\r\n"));
        server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let (response, ()) = tokio::join!(exchange(connection, request), serving);
    assert_eq!(response.unwrap().status(), 204);
    assert!(pool.take().is_none());
}

#[tokio::test]
async fn a_header_larger_than_the_buffer_is_sent_too() {
    let pool = Arc::<Pool>::default();
    let (connection, mut server) = connection(&pool).await;
    let mut request = get();
    request.headers_mut().insert("x", "y".repeat(200_000).parse().unwrap());
    let serving = async {
        assert!(received(&mut server, "\r\n\r\n").await.len() > 200_000);
        server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    };
    let (response, ()) = tokio::join!(exchange(connection, request), serving);
    assert_eq!(response.unwrap().status(), 204);
    assert!(pool.take().is_some());
}
