//! An HTTP/2 server without TLS that stalls, hangs or streams, by the path of the request.

use super::accept;
use h2::{RecvStream, SendStream, server::SendResponse};
use std::{
    future::{pending, poll_fn},
    io::Cursor,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

type Data = Cursor<Vec<u8>>;

/// A running server; it serves until the process ends.
///
/// Requests for `/hang` get no response, and their bodies are not read. The response to `/stream/N` has an endless body
/// in frames of N bytes. All other responses are `ok`.
pub struct Http2Server {
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    hanging: AtomicUsize,
    streamed: AtomicUsize,
}

impl Http2Server {
    /// Starts a server that allows this number of concurrent streams on a connection.
    pub fn allowing(streams: u32) -> Self {
        let seen = Arc::<Seen>::default();
        let shared = Arc::clone(&seen);
        let address = accept(move |stream| {
            shared.connections.fetch_add(1, Ordering::Relaxed);
            serve(stream, streams, Arc::clone(&shared))
        });
        Self { address, seen }
    }

    /// Returns the number of connections so far.
    pub fn connections(&self) -> usize {
        self.seen.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of requests so far without a response.
    pub fn hanging(&self) -> usize {
        self.seen.hanging.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes of endless bodies for which there was room in the windows.
    pub fn streamed(&self) -> usize {
        self.seen.streamed.load(Ordering::Relaxed)
    }
}

async fn serve(stream: tokio::net::TcpStream, streams: u32, seen: Arc<Seen>) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(streams);
    let Ok(mut connection) = builder.handshake::<_, Data>(stream).await else { return };
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond, Arc::clone(&seen)));
    }
}

async fn answer(
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Data>,
    seen: Arc<Seen>,
) -> Option<()> {
    let path = request.uri().path().to_owned();
    if path == "/hang" {
        seen.hanging.fetch_add(1, Ordering::Relaxed);
        return pending().await;
    }
    let mut stream = respond.send_response(http::Response::new(()), false).ok()?;
    let Some(size) = path.strip_prefix("/stream/").and_then(|size| size.parse().ok()) else {
        return stream.send_data(Cursor::new(b"ok".to_vec()), true).ok();
    };
    loop {
        send(&mut stream, size).await?;
        seen.streamed.fetch_add(size, Ordering::Relaxed);
    }
}

/// Sends a frame of this size once there is room for it.
async fn send(stream: &mut SendStream<Data>, size: usize) -> Option<()> {
    stream.reserve_capacity(size);
    while stream.capacity() < size {
        poll_fn(|context| stream.poll_capacity(context)).await?.ok()?;
    }
    stream.send_data(Cursor::new(vec![b'x'; size]), false).ok()
}
