//! One HTTP/2 connection to a server, which carries many exchanges.

use super::{
    connector::ServerStream,
    exchange::{ExchangeError, Limits, Watchdog},
    request_body::RequestBody,
};
use crate::connection::Alarm;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http2::{self, SendRequest},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Instant,
};

/// Bytes of responses that a server may send ahead on one stream, and on a connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Exchanges at a time on one connection: as many as servers should take at least (RFC 9113 section 6.5.2).
const MOST_EXCHANGES: usize = 100;

/// A connection that carries many exchanges at a time; clones are the same connection.
#[derive(Clone)]
pub(crate) struct Http2Connection {
    sender: SendRequest<RequestBody>,
    /// Held by every exchange.
    exchanges: Arc<()>,
    pub(super) used: Instant,
}

impl Http2Connection {
    /// Its driver is a task of this event loop, which ends when nobody can send any more.
    pub(super) async fn new(stream: ServerStream) -> io::Result<Self> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(super::MOST_RESPONSE_HEADER);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "an HTTP/2 connection to a server has ended");
            }
        });
        Ok(Self { sender, exchanges: Arc::new(()), used: Instant::now() })
    }

    /// Whether it takes one more exchange.
    pub(super) fn has_room(&self) -> bool {
        !self.sender.is_closed() && self.exchanges() < MOST_EXCHANGES
    }

    /// Exchanges under way.
    pub(super) fn exchanges(&self) -> usize {
        Arc::strong_count(&self.exchanges) - 1
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Another handle, that does not count as an exchange.
    pub(super) fn exchange(&self) -> Http2Exchange {
        Http2Exchange { sender: self.sender.clone(), counted: Arc::clone(&self.exchanges) }
    }
}

/// The right to one exchange.
pub(crate) struct Http2Exchange {
    sender: SendRequest<RequestBody>,
    counted: Arc<()>,
}

impl Http2Exchange {
    /// Sends a request, and waits for the header of its response.
    pub(super) fn send(
        mut self,
        request: Request<RequestBody>,
        limits: Limits,
    ) -> impl Future<Output = Result<Response<Http2Body>, ExchangeError>> {
        let mut watchdog = Watchdog::new(limits, request.body().progress());
        let mut response = Box::pin(self.sender.try_send_request(request));
        let counted = self.counted;
        async move {
            let mut alarm = Alarm::default();
            let response = poll_fn(|context| match response.as_mut().poll(context) {
                Poll::Ready(response) => Poll::Ready(response.map_err(ExchangeError::from)),
                Poll::Pending => {
                    ready!(watchdog.poll_overdue(context, &mut alarm));
                    Poll::Ready(Err(ExchangeError::TimedOut))
                }
            })
            .await?;
            watchdog.header();
            Ok(response.map(|incoming| Http2Body { incoming, alarm, watchdog, _counted: counted }))
        }
    }
}

/// The body of a response.
pub(crate) struct Http2Body {
    incoming: Incoming,
    alarm: Alarm,
    watchdog: Watchdog,
    _counted: Arc<()>,
}

impl Body for Http2Body {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let this = &mut *self;
        match Pin::new(&mut this.incoming).poll_frame(context) {
            Poll::Ready(frame) => {
                this.watchdog.renew();
                Poll::Ready(frame.map(|frame| frame.map_err(ExchangeError::from)))
            }
            Poll::Pending => {
                ready!(this.watchdog.poll_overdue(context, &mut this.alarm));
                Poll::Ready(Some(Err(ExchangeError::TimedOut)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
