//! HTTP/1.1 connection to an endpoint, and its current exchange.
//!
//! The connection has no task of its own: the task that waits for the response drives it, so that received bytes wake
//! only the task that forwards them. It holds no buffer between exchanges.
//!
//! `request_writer` sends; `response_head` determines the framing of the body, which `response_body` reads by
//! `body_decoder` and `chunked`; `malformed` is the error.

mod body_decoder;
mod chunked;
mod malformed;
mod request_writer;
mod response_body;
mod response_head;
#[cfg(test)]
mod tests;

pub(crate) use response_body::Http1Body;

use super::{
    error::{ExchangeError, Limits, Watchdog},
    request_body::RequestBody,
};
use crate::{
    connection::{Alarm, PooledBuffer},
    upstream::connect::{connector::ServerStream, peer_key::PeerKey},
};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use malformed::Malformed;
use request_writer::{RequestWriter, WriteError};
use response_head::{Asked, ResponseHead};
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};
use tokio::io::{AsyncRead, ReadBuf};

/// Pool of idle connections.
pub(crate) trait Shelf: Send + Sync {
    /// Returns a connection that is free for the next request.
    fn put_back(&self, connection: Box<Http1Connection>);

    /// Records that a connection with this key was closed.
    fn closed(&self, key: &PeerKey);
}

/// Place of a connection in its pool. It counts as open while this lives.
pub(crate) struct Place {
    /// Weak, as idle connections must not keep their pool alive.
    pub(crate) pool: Weak<dyn Shelf>,
    pub(crate) key: PeerKey,
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
    stream: ServerStream,
    alarm: Alarm,
    /// Pool that it returns to.
    pub(crate) place: Place,
    pub(crate) idle_since: Instant,
}

impl Http1Connection {
    pub(crate) fn new(stream: ServerStream, place: Place) -> Box<Self> {
        Box::new(Self { stream, alarm: Alarm::default(), place, idle_since: Instant::now() })
    }

    /// Returns whether it can carry another exchange: the server has neither closed it nor sent unsolicited data.
    pub(crate) fn is_ready(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// Returns the connection to its pool.
    fn release(mut self: Box<Self>) {
        if self.is_ready()
            && let Some(pool) = self.place.pool.upgrade()
        {
            self.idle_since = Instant::now();
            pool.put_back(self);
        }
    }

    /// Sends a request, and waits for the header of its response. Informational responses before it are forwarded.
    ///
    /// State that does not outlive this call is not part of the future, which is moved for every request.
    pub(crate) fn send(
        mut self: Box<Self>,
        request: Request<RequestBody>,
        limits: Limits,
        informational: impl Fn(StatusCode, &HeaderMap),
    ) -> impl Future<Output = Result<Response<Http1Body>, ExchangeError>> {
        let mut watchdog = Watchdog::new(limits, request.body().progress());
        let asked = Asked {
            head: *request.method() == Method::HEAD,
            upgrade: request.headers().contains_key(header::UPGRADE),
            version: request.version(),
        };
        let sending = Sending::new(request, asked);
        async move {
            let mut sending = sending?;
            let (mut head, input) =
                poll_fn(|context| match sending.poll_head(&mut self.stream, context, &informational) {
                    Poll::Pending => {
                        Poll::Ready(Err(ready!(watchdog.poll_overdue(context, &mut self.alarm))))
                    }
                    ready => ready,
                })
                .await?;
            watchdog.header();
            // A server that has half of a request would treat the next one as the other half.
            head.persists &= sending.failure.is_none();
            Ok(Http1Body::response(head, input, self, sending.writer, watchdog))
        }
    }
}

/// First half of an exchange, until the header of the response is received.
struct Sending {
    asked: Asked,
    /// `None` once the server has received the request.
    writer: Option<Box<RequestWriter>>,
    /// Set when the server no longer reads the request. It may still send a response.
    failure: Option<io::Error>,
    begun: bool,
    read: PooledBuffer,
}

impl Sending {
    fn new(request: Request<RequestBody>, asked: Asked) -> Result<Self, ExchangeError> {
        let writer = Some(Box::new(RequestWriter::new(request)?));
        Ok(Self { asked, writer, failure: None, begun: false, read: PooledBuffer::default() })
    }

    fn poll_head(
        &mut self,
        stream: &mut ServerStream,
        context: &mut Context<'_>,
        informational: &impl Fn(StatusCode, &HeaderMap),
    ) -> Poll<Result<(ResponseHead, Bytes), ExchangeError>> {
        self.write(stream, context)?;
        loop {
            let before = self.read.bytes().len();
            ready!(self.read.fill(usize::MAX, |room| Pin::new(&mut *stream).poll_read(context, room)))
                .map_err(|error| self.ended(Some(error)))?;
            if self.read.bytes().len() == before {
                let full = self.read.room() == 0;
                let error = if full { ExchangeError::malformed(TOO_LARGE) } else { self.ended(None) };
                return Poll::Ready(Err(error));
            }
            // Only a line end completes a header.
            if !self.read.bytes()[before..].contains(&b'\n') {
                continue;
            }
            while !self.read.is_empty() {
                let read = Bytes::copy_from_slice(self.read.bytes());
                let head = ResponseHead::parse(&read, self.asked).map_err(ExchangeError::malformed)?;
                let Some(head) = head else { break };
                if head.status.is_informational() && head.status != StatusCode::SWITCHING_PROTOCOLS {
                    informational(head.status, &head.headers);
                    self.read.consume(head.length);
                    continue;
                }
                self.read.consume(usize::MAX);
                let input = read.slice(head.length..);
                return Poll::Ready(Ok((head, input)));
            }
        }
    }

    /// Sends the data that can be sent now.
    fn write(&mut self, stream: &mut ServerStream, context: &mut Context<'_>) -> Result<(), ExchangeError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let poll = writer.poll(stream, context);
        self.begun |= writer.begun;
        match poll {
            Poll::Pending => return Ok(()),
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(WriteError::Server(error))) => self.failure = Some(error),
            Poll::Ready(Err(WriteError::Client(error))) => return Err(ExchangeError::Client(error)),
        }
        self.writer = None;
        Ok(())
    }

    /// Returns the reason for a missing response.
    fn ended(&mut self, error: Option<io::Error>) -> ExchangeError {
        if !self.begun {
            return ExchangeError::NotSent;
        }
        let error = self.failure.take().or(error);
        ExchangeError::Broken(error.map_or_else(|| "closed before a response".into(), Into::into))
    }
}

const TOO_LARGE: Malformed = Malformed("the header is too large");

impl ExchangeError {
    fn malformed(problem: Malformed) -> Self {
        Self::Broken(problem.into())
    }
}
