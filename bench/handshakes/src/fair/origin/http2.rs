//! HTTP/2 of the origin, in plain text and with prior knowledge: one thread for all connections.

use std::{future::poll_fn, io, net::TcpListener, thread};

use bytes::Bytes;
use h2::{RecvStream, SendStream, server::SendResponse};
use http::{Request, Response};

use super::responses::Responses;
use crate::fair::priority::raise_priority;

/// Windows of streams and of connections.
const WINDOW: u32 = 1 << 20;

/// Starts the thread, which serves until the process ends.
pub(super) fn start(listener: TcpListener, responses: Responses) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    thread::spawn(move || {
        raise_priority();
        runtime.block_on(accept(listener, responses))
    });
    Ok(())
}

async fn accept(listener: TcpListener, responses: Responses) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (connection, _) = listener.accept().await?;
        let _ = connection.set_nodelay(true);
        tokio::spawn(serve(connection, responses.clone()));
    }
}

async fn serve(connection: tokio::net::TcpStream, responses: Responses) {
    let mut builder = h2::server::Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    // The server may forward every reset of a misbehaving client: that must not end a connection with other requests.
    builder.max_pending_accept_reset_streams(usize::MAX).max_local_error_reset_streams(None);
    let Ok(mut connection) = builder.handshake::<_, Bytes>(connection).await else { return };
    while let Some(Ok((request, response))) = connection.accept().await {
        tokio::spawn(respond(request, response, responses.clone()));
    }
}

/// Reads the request to its end, and responds.
async fn respond(
    request: Request<RecvStream>,
    mut response: SendResponse<Bytes>,
    responses: Responses,
) -> Result<(), h2::Error> {
    let length = responses.length(request.uri().path());
    let mut body = request.into_body();
    while let Some(data) = body.data().await {
        body.flow_control().release_capacity(data?.len())?;
    }
    let header = Response::builder().header("content-type", "text/plain").header("content-length", length);
    let header = header.body(()).map_err(|_| h2::Reason::INTERNAL_ERROR)?;
    let mut stream = response.send_response(header, length == 0)?;
    if length == 0 {
        return Ok(());
    }
    for piece in responses.body(length) {
        send(&mut stream, piece).await?;
    }
    stream.send_data(Bytes::new(), true)
}

/// Sends bytes as the window allows.
async fn send(stream: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        stream.reserve_capacity(bytes.len());
        let Some(capacity) = poll_fn(|context| stream.poll_capacity(context)).await else {
            return Err(h2::Reason::CANCEL.into());
        };
        let capacity = capacity?.min(bytes.len());
        stream.send_data(bytes.split_to(capacity), false)?;
    }
    Ok(())
}
