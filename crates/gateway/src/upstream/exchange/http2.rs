//! HTTP/2 connection to an endpoint, which carries many exchanges.

use super::{
    error::{ExchangeError, Limits, Watchdog},
    request_body::RequestBody,
};
use crate::{connection::Alarm, upstream::connect::connector::ServerStream};
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
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Instant,
};

/// Flow-control windows in bytes, per stream and per connection.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 4 * 1024 * 1024;

/// Maximum number of concurrent exchanges on a connection: the minimum that servers should allow (RFC 9113 section
/// 6.5.2).
const MOST_EXCHANGES: usize = 100;

/// A connection that carries many concurrent exchanges; clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct Http2Connection {
    sender: SendRequest<RequestBody>,
    /// Held by every exchange.
    shared: Arc<Shared>,
    pub(crate) used: Instant,
}

impl Http2Connection {
    /// Creates a connection. Its driver is a task of this event loop, which ends when there are no more senders.
    pub(crate) async fn new(stream: ServerStream) -> io::Result<Self> {
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(crate::upstream::MOST_RESPONSE_HEADER);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        tokio::spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(%error, "upstream HTTP/2 connection ended");
            }
        });
        Ok(Self { sender, shared: Arc::default(), used: Instant::now() })
    }

    /// Returns whether it has capacity for another exchange.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_over() && self.exchanges() < MOST_EXCHANGES
    }

    /// Returns the number of exchanges in progress.
    pub(crate) fn exchanges(&self) -> usize {
        Arc::strong_count(&self.shared) - 1
    }

    /// Returns whether it accepts no further exchanges.
    pub(crate) fn is_over(&self) -> bool {
        self.sender.is_closed() || self.shared.is_silent.load(Ordering::Relaxed)
    }

    /// Returns another handle, which does not count as an exchange.
    pub(crate) fn exchange(&self) -> Http2Exchange {
        Http2Exchange { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

/// State shared by the exchanges of a connection.
#[derive(Default)]
struct Shared {
    /// Number of times that data was received on the connection.
    heard: AtomicUsize,
    /// Whether an exchange has timed out while no data was received on the connection: the path may be broken, which
    /// TCP detects late.
    is_silent: AtomicBool,
}

impl Shared {
    fn hear(&self) {
        self.heard.fetch_add(1, Ordering::Relaxed);
    }

    /// Records a timeout of an exchange, with the receive count when it started.
    fn timed_out(&self, heard: usize) {
        if self.heard.load(Ordering::Relaxed) == heard {
            self.is_silent.store(true, Ordering::Relaxed);
        }
    }
}

/// Handle of one exchange.
pub(crate) struct Http2Exchange {
    sender: SendRequest<RequestBody>,
    shared: Arc<Shared>,
}

impl Http2Exchange {
    /// Sends a request, and waits for the header of its response.
    pub(crate) fn send(
        mut self,
        request: Request<RequestBody>,
        limits: Limits,
    ) -> impl Future<Output = Result<Response<Http2Body>, ExchangeError>> {
        let mut watchdog = Watchdog::new(limits, request.body().progress());
        let mut response = Box::pin(self.sender.try_send_request(request));
        let shared = self.shared;
        let heard = shared.heard.load(Ordering::Relaxed);
        async move {
            let mut alarm = Alarm::default();
            let response = poll_fn(|context| match response.as_mut().poll(context) {
                Poll::Ready(response) => Poll::Ready(response.map_err(ExchangeError::from)),
                Poll::Pending => {
                    let error = ready!(watchdog.poll_overdue(context, &mut alarm));
                    if matches!(error, ExchangeError::TimedOut) {
                        shared.timed_out(heard);
                    }
                    Poll::Ready(Err(error))
                }
            })
            .await?;
            watchdog.header();
            shared.hear();
            Ok(response.map(|incoming| Http2Body { incoming, alarm, watchdog, shared }))
        }
    }
}

/// Body of a response.
pub(crate) struct Http2Body {
    incoming: Incoming,
    alarm: Alarm,
    watchdog: Watchdog,
    shared: Arc<Shared>,
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
                this.shared.hear();
                Poll::Ready(frame.map(|frame| frame.map_err(ExchangeError::from)))
            }
            Poll::Pending => {
                let error = ready!(this.watchdog.poll_overdue(context, &mut this.alarm));
                Poll::Ready(Some(Err(error)))
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
