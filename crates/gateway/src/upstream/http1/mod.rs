//! One HTTP/1.1 connection to a server, and the exchange that it carries.
//!
//! No task stands behind it: whoever waits for the response drives the connection, so that the bytes of a response wake the
//! task that passes them on, and nobody else. Nor does it hold a buffer between two exchanges.

mod body_decoder;
mod chunked;
mod malformed;
mod request_writer;
mod response_body;
mod response_head;
#[cfg(test)]
mod tests;

pub(crate) use self::response_body::Http1Body;

use self::{
    malformed::Malformed,
    request_writer::{RequestWriter, WriteError},
    response_head::{Asked, ResponseHead},
};
use super::{
    connector::ServerStream,
    exchange::{ExchangeError, Limits, Watchdog},
    peer_key::PeerKey,
    request_body::RequestBody,
};
use crate::connection::{Alarm, PooledBuffer};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Weak,
    task::{Context, Poll, Waker, ready},
    time::Instant,
};
use tokio::io::{AsyncRead, ReadBuf};

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
    stream: ServerStream,
    alarm: Alarm,
    /// Where it returns to.
    pub(super) place: Place,
    pub(super) idle_since: Instant,
}

impl Http1Connection {
    pub(super) fn new(stream: ServerStream, place: Place) -> Box<Self> {
        Box::new(Self { stream, alarm: Alarm::default(), place, idle_since: Instant::now() })
    }

    /// Whether it can carry another exchange: the server has neither ended it nor said anything unasked.
    pub(super) fn is_ready(&mut self) -> bool {
        let mut byte = [0];
        let mut context = Context::from_waker(Waker::noop());
        Pin::new(&mut self.stream).poll_read(&mut context, &mut ReadBuf::new(&mut byte)).is_pending()
    }

    /// The connection is free again.
    fn release(mut self: Box<Self>) {
        if self.is_ready()
            && let Some(pool) = self.place.pool.upgrade()
        {
            self.idle_since = Instant::now();
            pool.put_back(self);
        }
    }

    /// Sends a request, and waits for the header of its response. Informational responses before it are passed on.
    ///
    /// What does not outlive this call is not part of the future, which every request moves about.
    pub(super) fn send(
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
            // A server that has half of a request would take the next one for the other half.
            head.persists &= sending.failure.is_none();
            Ok(Http1Body::response(head, input, self, sending.writer, watchdog))
        }
    }
}

/// The first half of an exchange: until the header of the response is there.
struct Sending {
    asked: Asked,
    /// `None` once the server has the request.
    writer: Option<Box<RequestWriter>>,
    /// The server takes no more of the request. It may say why.
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

    /// Sends what can be sent now.
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

    /// Why there is no response.
    fn ended(&mut self, error: Option<io::Error>) -> ExchangeError {
        if !self.begun {
            return ExchangeError::NotSent;
        }
        let error = self.failure.take().or(error);
        ExchangeError::Broken(error.map_or_else(|| "it ended before a response".into(), Into::into))
    }
}

const TOO_LARGE: Malformed = Malformed("the header is too large");

impl ExchangeError {
    fn malformed(problem: Malformed) -> Self {
        Self::Broken(problem.into())
    }
}
