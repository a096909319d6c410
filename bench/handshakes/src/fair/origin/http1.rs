//! HTTP/1.1 of the origin: one thread for the heads of requests and for those of the well-behaved client, and one of
//! ordinary priority for the others.

use std::{io, net::TcpListener, pin::Pin, thread};

use bytes::{Buf, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    runtime::{Builder, Handle, Runtime},
};

use super::responses::{Responses, WEBSOCKET_ACCEPT, is_measured};
use crate::fair::priority::raise_priority;

const READ: usize = 64 << 10;

/// The event loops.
#[derive(Clone)]
struct EventLoops {
    measured: Handle,
    others: Handle,
}

/// Boxed, because it hands over to a future that hands back.
type Serving = Pin<Box<dyn Future<Output = Option<()>> + Send>>;

/// Starts the threads, which serve until the process ends.
pub(super) fn start(listener: TcpListener, responses: Responses) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let (measured, others) = (event_loop()?, event_loop()?);
    let event_loops = EventLoops { measured: measured.handle().clone(), others: others.handle().clone() };
    thread::spawn(move || others.block_on(std::future::pending::<()>()));
    thread::spawn(move || {
        raise_priority();
        measured.block_on(accept(listener, responses, event_loops))
    });
    Ok(())
}

fn event_loop() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_io().build()
}

async fn accept(listener: TcpListener, responses: Responses, event_loops: EventLoops) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let _ = stream.set_nodelay(true);
        let connection = Connection { stream, received: BytesMut::new() };
        tokio::spawn(serve(connection, responses.clone(), event_loops.clone()));
    }
}

/// Serves requests of the well-behaved client until the first of another, which it hands over.
fn serve(mut connection: Connection, responses: Responses, event_loops: EventLoops) -> Serving {
    Box::pin(async move {
        loop {
            let request = Request::read(&mut connection).await?;
            if !is_measured(&request.path) {
                let others = event_loops.others.clone();
                let (stream, received) = (connection.stream.into_std().ok()?, connection.received);
                others.spawn(async move {
                    let stream = TcpStream::from_std(stream).ok()?;
                    serve_other(Connection { stream, received }, request, responses, event_loops).await
                });
                return None;
            }
            request.discard_body(&mut connection).await?;
            respond(&mut connection, &responses, responses.length(&request.path)).await?;
        }
    })
}

/// Serves one request, and hands the connection back.
async fn serve_other(
    mut connection: Connection,
    request: Request,
    responses: Responses,
    event_loops: EventLoops,
) -> Option<()> {
    if request.is_websocket {
        return discard_messages(connection).await;
    }
    request.discard_body(&mut connection).await?;
    respond(&mut connection, &responses, responses.length(&request.path)).await?;
    let measured = event_loops.measured.clone();
    let (stream, received) = (connection.stream.into_std().ok()?, connection.received);
    measured.spawn(async move {
        let stream = TcpStream::from_std(stream).ok()?;
        serve(Connection { stream, received }, responses, event_loops).await
    });
    None
}

async fn respond(connection: &mut Connection, responses: &Responses, length: usize) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\n\r\n");
    let mut pieces = responses.body(length);
    // One segment for a small response.
    let first = [head.as_bytes(), &pieces.next().unwrap_or_default()].concat();
    connection.stream.write_all(&first).await.ok()?;
    for piece in pieces {
        connection.stream.write_all(&piece).await.ok()?;
    }
    Some(())
}

/// Accepts a WebSocket, and reads it to its end.
async fn discard_messages(mut connection: Connection) -> Option<()> {
    let response = format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Accept: {WEBSOCKET_ACCEPT}\r\n\r\n"
    );
    connection.stream.write_all(response.as_bytes()).await.ok()?;
    loop {
        connection.received.clear();
        connection.receive().await?;
    }
}

/// A connection, with the bytes that were received but not used.
struct Connection<S = TcpStream> {
    stream: S,
    received: BytesMut,
}

impl<S: AsyncReadExt + Unpin> Connection<S> {
    /// Receives more bytes; `None` when the connection has ended.
    async fn receive(&mut self) -> Option<()> {
        self.received.reserve(READ);
        (self.stream.read_buf(&mut self.received).await.ok()? > 0).then_some(())
    }

    /// Reads a line without its end.
    async fn line(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line = self.received.split_to(end + 1);
                return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            self.receive().await?;
        }
    }

    async fn skip(&mut self, mut length: usize) -> Option<()> {
        loop {
            let present = length.min(self.received.len());
            self.received.advance(present);
            length -= present;
            if length == 0 {
                return Some(());
            }
            self.receive().await?;
        }
    }
}

/// Head of a request.
struct Request {
    path: String,
    length: usize,
    is_chunked: bool,
    is_websocket: bool,
}

impl Request {
    async fn read(connection: &mut Connection<impl AsyncReadExt + Unpin>) -> Option<Self> {
        let path = connection.line().await?.split(' ').nth(1)?.to_owned();
        let mut request = Self { path, length: 0, is_chunked: false, is_websocket: false };
        loop {
            let field = connection.line().await?.to_ascii_lowercase();
            match field.split_once(':') {
                None => return Some(request),
                Some(("content-length", value)) => request.length = value.trim().parse().ok()?,
                Some(("transfer-encoding", _)) => request.is_chunked = true,
                Some(("upgrade", value)) => request.is_websocket = value.trim() == "websocket",
                Some(_) => {}
            }
        }
    }

    async fn discard_body(&self, connection: &mut Connection<impl AsyncReadExt + Unpin>) -> Option<()> {
        if !self.is_chunked {
            return connection.skip(self.length).await;
        }
        loop {
            let line = connection.line().await?;
            let length = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
            connection.skip(length).await?;
            connection.line().await?;
            if length == 0 {
                return Some(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_to_their_end() {
        let chunked = "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        let sized = "GET /large HTTP/1.1\r\nContent-Length: 2\r\n\r\nxy";
        let both = [chunked, sized].concat();
        let mut connection = Connection { stream: both.as_bytes(), received: BytesMut::new() };
        event_loop().unwrap().block_on(async {
            for path in ["/a", "/large"] {
                let request = Request::read(&mut connection).await.unwrap();
                assert_eq!(request.path, path);
                request.discard_body(&mut connection).await.unwrap();
            }
            assert!(Request::read(&mut connection).await.is_none());
        });
    }
}
