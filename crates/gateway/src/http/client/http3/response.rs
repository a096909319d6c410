//! Sending of responses over HTTP/3.

use crate::{
    connection::Patience,
    http::response::body::ResponseBody,
    quic::{Code, ResponseStream, StreamError},
};
use bytes::Bytes;
use http::{HeaderMap, Response, response::Parts};
use http_body::{Body, Frame};
use quiche::h3::Header;
use std::{
    future::poll_fn,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// Reason why a response is not sent completely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The client reset the stream or disconnected.
    ByClient,
    ByUs(Code),
}

/// Sends a response as fast as the client reads it. Gives up when the client reads nothing for `limit`.
pub(super) async fn send(
    response: Response<ResponseBody>,
    stream: &mut ResponseStream,
    limit: Duration,
) -> Result<(), Cut> {
    let (head, mut body) = response.into_parts();
    let ended = body.is_end_stream();
    send_head(stream, &head, ended, limit).await?;
    if ended { Ok(()) } else { send_body(stream, &mut body, limit).await }
}

/// Sends a header, and ends the stream if it is the `last`.
pub(super) async fn send_head(
    stream: &mut ResponseStream,
    head: &Parts,
    last: bool,
    limit: Duration,
) -> Result<(), Cut> {
    let fields = fields(Some(head.status.as_str()), &head.headers);
    wait(limit, |context| stream.poll_head(context, &fields, last)).await
}

async fn send_body(stream: &mut ResponseStream, body: &mut ResponseBody, limit: Duration) -> Result<(), Cut> {
    loop {
        let frame = poll_fn(|context| {
            if stream.poll_reset(context).is_ready() {
                return Poll::Ready(Err(Cut::ByClient));
            }
            Pin::new(&mut *body).poll_frame(context).map(Ok)
        });
        let Some(frame) = frame.await? else {
            return wait(limit, |context| stream.poll_data(context, &mut Bytes::new(), true)).await;
        };
        let frame = frame.map_err(|_| Cut::ByUs(Code::InternalError))?;
        match frame.into_data().map_err(Frame::into_trailers) {
            Ok(mut data) => {
                let last = body.is_end_stream();
                send_data(stream, &mut data, last, limit).await?;
                if last {
                    return Ok(());
                }
            }
            Err(Ok(trailers)) => {
                let fields = fields(None, &trailers);
                return wait(limit, |context| stream.poll_trailers(context, &fields)).await;
            }
            Err(Err(_)) => {}
        }
    }
}

/// Sends data. The time limit restarts whenever the client reads some of it.
async fn send_data(
    stream: &mut ResponseStream,
    data: &mut Bytes,
    last: bool,
    limit: Duration,
) -> Result<(), Cut> {
    let mut patience = Patience::default();
    let mut left = data.len();
    poll_fn(|context| {
        let sent = stream.poll_data(context, data, last);
        if data.len() < left {
            left = data.len();
            patience.renew();
        }
        ended(sent, context, &mut patience, limit)
    })
    .await
}

async fn wait(
    limit: Duration,
    mut send: impl FnMut(&mut Context<'_>) -> Poll<Result<(), StreamError>>,
) -> Result<(), Cut> {
    let mut patience = Patience::default();
    poll_fn(|context| {
        let sent = send(context);
        ended(sent, context, &mut patience, limit)
    })
    .await
}

fn ended(
    sent: Poll<Result<(), StreamError>>,
    context: &mut Context<'_>,
    patience: &mut Patience,
    limit: Duration,
) -> Poll<Result<(), Cut>> {
    match sent {
        Poll::Ready(sent) => Poll::Ready(sent.map_err(|_| Cut::ByClient)),
        Poll::Pending => {
            patience.poll_exhausted(context, limit).map(|()| Err(Cut::ByUs(Code::RequestCancelled)))
        }
    }
}

fn fields(status: Option<&str>, headers: &HeaderMap) -> Vec<Header> {
    let status = status.map(|status| Header::new(b":status", status.as_bytes()));
    let others = headers.iter().map(|(name, value)| Header::new(name.as_str().as_bytes(), value.as_bytes()));
    status.into_iter().chain(others).collect()
}
