//! One request over its own connection.

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::{error::Error, fmt::Display, future::Future};
use tokio::io::{AsyncRead, AsyncWrite};

/// Sends a request, and reads the response with `read`. The connection is then closed.
pub(crate) async fn send<S, B, R, T>(
    stream: S,
    request: Request<B>,
    read: impl FnOnce(Response<Incoming>) -> R,
) -> Result<T, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
    B: http_body::Body<Data = Bytes> + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
    R: Future<Output = Result<T, String>>,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(text)?;
    let exchange = async { read(sender.send_request(request).await.map_err(text)?).await };
    tokio::pin!(exchange, connection);
    tokio::select! {
        biased;
        taken = &mut exchange => taken,
        _ = &mut connection => exchange.await,
    }
}

/// Formats an error for a log.
pub(crate) fn text(error: impl Display) -> String {
    error.to_string()
}
