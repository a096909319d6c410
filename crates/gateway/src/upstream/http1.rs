//! One HTTP/1.1 connection to a server, and the exchange that it carries.
//!
//! No task stands behind it: whoever waits for the response drives the connection, so that the bytes of a response wake the
//! task that passes them on, and nobody else.

use super::{
    connector::ServerStream,
    exchange::{ExchangeError, Limits, Watchdog},
    peer_key::PeerKey,
    request_body::RequestBody,
};
use crate::connection::Alarm;
use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, Connection, SendRequest},
};
use hyper_util::rt::TokioIo;
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

/// Of a response's body, at most this much is read ahead.
const READ_AHEAD: usize = 128 * 1024;

/// Where connections wait for their next exchange.
pub(super) trait Shelf: Send + Sync {
    /// A connection is free for the next request, which may be waiting already.
    fn put_back(&self, connection: Box<Http1Connection>);

    /// One of these connections is gone.
    fn closed(&self, key: &PeerKey);
}

/// Where a connection belongs. It counts as open for as long as this lives.
pub(super) struct Place {
    /// Idle connections must not keep their pool alive.
    pub(super) pool: Weak<dyn Shelf>,
    pub(super) key: PeerKey,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.closed(&self.key);
        }
    }
}

/// A connection that carries one exchange at a time.
pub(crate) struct Http1Connection {
    sender: SendRequest<RequestBody>,
    driver: Connection<TokioIo<ServerStream>, RequestBody>,
    /// The driver must not be asked again.
    ended: bool,
    alarm: Alarm,
    /// Where it returns to.
    pub(super) place: Place,
    pub(super) idle_since: Instant,
}

impl Http1Connection {
    pub(super) async fn new(stream: ServerStream, place: Place) -> io::Result<Box<Self>> {
        let mut builder = http1::Builder::new();
        builder.max_buf_size(READ_AHEAD);
        let (sender, driver) = builder.handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
        let alarm = Alarm::default();
        Ok(Box::new(Self { sender, driver, ended: false, alarm, place, idle_since: Instant::now() }))
    }

    /// Lets the connection do what it can; false once it has ended. What it ended with is told to whoever waits for a
    /// response.
    pub(super) fn drive(&mut self, context: &mut Context<'_>) -> bool {
        if !self.ended {
            self.ended = self.driver.poll_without_shutdown(context).is_ready();
        }
        !self.ended
    }

    /// Whether it can carry another exchange.
    pub(super) fn is_ready(&mut self) -> bool {
        self.drive(&mut Context::from_waker(Waker::noop())) && self.sender.is_ready()
    }

    /// Sends a request, and waits for the header of its response.
    ///
    /// What does not outlive this call is not part of the future, which every request moves about.
    pub(super) fn send(
        mut self: Box<Self>,
        request: Request<RequestBody>,
        limits: Limits,
    ) -> impl Future<Output = Result<Response<Http1Body>, ExchangeError>> {
        let mut watchdog = Watchdog::new(limits, request.body().progress());
        let mut response = Box::pin(self.sender.try_send_request(request));
        async move {
            let response = poll_fn(|context| {
                // Only the connection makes the response ready, so nobody else needs to wake this task.
                let alive = self.drive(context);
                match response.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
                    Poll::Ready(response) => Poll::Ready(response.map_err(ExchangeError::from)),
                    Poll::Pending if !alive => Poll::Ready(Err(ExchangeError::Broken("it ended".into()))),
                    Poll::Pending => {
                        ready!(watchdog.poll_overdue(context, &mut self.alarm));
                        Poll::Ready(Err(ExchangeError::TimedOut))
                    }
                }
            })
            .await?;
            watchdog.header();
            let connection = Some(self);
            Ok(response.map(|incoming| Http1Body { incoming, connection, watchdog }))
        }
    }
}

/// The body of a response. The connection returns to its pool when it is complete.
pub(crate) struct Http1Body {
    incoming: Incoming,
    connection: Option<Box<Http1Connection>>,
    watchdog: Watchdog,
}

impl Http1Body {
    /// Behind a 101: the connection, and what came behind the response's header.
    pub(super) async fn into_stream(mut self) -> Option<(ServerStream, Bytes)> {
        let mut connection = self.connection.take()?;
        poll_fn(|context| if connection.drive(context) { Poll::Pending } else { Poll::Ready(()) }).await;
        let parts = connection.driver.into_parts();
        Some((parts.io.into_inner(), parts.read_buf))
    }

    /// The connection has carried this exchange.
    fn release(&mut self) {
        if let Some(mut connection) = self.connection.take()
            && connection.is_ready()
            && let Some(pool) = connection.place.pool.upgrade()
        {
            connection.idle_since = Instant::now();
            pool.put_back(connection);
        }
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let this = &mut *self;
        let mut quiet = Context::from_waker(Waker::noop());
        let mut driven = false;
        loop {
            match Pin::new(&mut this.incoming).poll_frame(&mut quiet) {
                Poll::Ready(Some(Ok(frame))) => {
                    this.watchdog.renew();
                    return Poll::Ready(Some(Ok(frame)));
                }
                Poll::Ready(Some(Err(error))) => {
                    this.connection = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                Poll::Ready(None) => {
                    this.release();
                    return Poll::Ready(None);
                }
                Poll::Pending => {}
            }
            let Some(connection) = &mut this.connection else { return Poll::Ready(None) };
            if driven {
                ready!(this.watchdog.poll_overdue(context, &mut connection.alarm));
                return Poll::Ready(Some(Err(ExchangeError::TimedOut)));
            }
            connection.drive(context);
            driven = true;
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl Drop for Http1Body {
    fn drop(&mut self) {
        if self.incoming.is_end_stream() {
            self.release();
        }
    }
}
