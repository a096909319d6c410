//! The body of a client's request, in any HTTP version. The idle timeout applies between two pieces; a timeout for
//! the whole request may apply as well.

use super::read_ahead::{Beginning, ReadAhead};
use crate::{
    connection::{Connection, Patience},
    http::request::http3_head,
    http2::IncomingStream,
    memory::Holder,
    quic::RequestBytes,
    upstream::{BoxError, ClientBodyError},
};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::{Body, Frame, SizeHint};
use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};
use tokio::{runtime::Handle, time::timeout};

/// Limits on discarding an unread body: bytes and time.
const MOST_DISCARDED: usize = 1 << 20;
const LINGER: Duration = Duration::from_secs(2);

/// A request's body.
pub(crate) struct ClientBody {
    source: Source,
    connection: Arc<Connection>,
    /// The exchange of the request.
    holder: Arc<Holder>,
    patience: Patience,
    /// Data that was read ahead.
    ahead: Option<Box<ReadAhead>>,
    /// Deadline for the whole body.
    due: Option<Instant>,
    /// Whether the end was read.
    ended: bool,
    /// Number of bytes that are still allowed, if the body is limited.
    left: Option<u64>,
}

/// A body whose declared length exceeds the limit.
pub(crate) struct TooLarge;

enum Source {
    Http1(hyper::body::Incoming),
    Http2 { stream: Option<IncomingStream>, length: Option<u64> },
    Http3 { stream: Option<RequestBytes>, length: Option<u64>, received: u64 },
}

/// The body's length differs from the announced one: an upstream might take the rest for another request.
#[derive(Debug, thiserror::Error)]
#[error("the body length differs from Content-Length")]
struct WrongLength;

impl ClientBody {
    pub(crate) fn http1(
        incoming: hyper::body::Incoming,
        connection: &Arc<Connection>,
        holder: &Arc<Holder>,
    ) -> Self {
        Self::new(Source::Http1(incoming), connection, holder)
    }

    /// The body of a stream; `None` if the request consists of the header only.
    pub(crate) fn http2(
        stream: Option<IncomingStream>,
        headers: &HeaderMap,
        connection: &Arc<Connection>,
        holder: &Arc<Holder>,
    ) -> Self {
        let length = announced(headers);
        stream.iter().for_each(|stream| stream.belongs_to(holder));
        Self::new(Source::Http2 { stream, length }, connection, holder)
    }

    pub(crate) fn http3(
        stream: RequestBytes,
        headers: &HeaderMap,
        connection: &Arc<Connection>,
        holder: &Arc<Holder>,
    ) -> Self {
        let length = announced(headers);
        Self::new(Source::Http3 { stream: Some(stream), length, received: 0 }, connection, holder)
    }

    fn new(source: Source, connection: &Arc<Connection>, holder: &Arc<Holder>) -> Self {
        let due = connection.clock.request_due();
        Self {
            source,
            connection: Arc::clone(connection),
            holder: Arc::clone(holder),
            patience: Patience::default(),
            ahead: None,
            ended: false,
            due,
            left: None,
        }
    }

    /// Returns the exchange of the request.
    pub(crate) fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }

    /// Limits the remaining body to this number of bytes.
    ///
    /// # Errors
    /// Fails if the declared length is larger.
    pub(crate) fn limit(&mut self, bytes: u64) -> Result<(), TooLarge> {
        self.left = Some(bytes);
        if self.size_hint().lower() > bytes { Err(TooLarge) } else { Ok(()) }
    }

    /// Reads the beginning of the body, up to `most` bytes, or one more if `to_the_end`. The data remains part of the
    /// body.
    ///
    /// # Errors
    /// Returns the error that ends the body early.
    pub(crate) async fn beginning(&mut self, most: usize, to_the_end: bool) -> Result<Beginning, BoxError> {
        let enough = if to_the_end { most + 1 } else { most };
        let mut read = self.ahead.take().unwrap_or_else(|| Box::new(ReadAhead::new(&self.holder)));
        let mut failure = None;
        while read.bytes() < enough && !read.is_complete && !self.is_end_stream() {
            match poll_fn(|context| Pin::new(&mut *self).poll_frame(context)).await {
                Some(Ok(frame)) => read.push(frame),
                Some(Err(error)) => {
                    failure = Some(error);
                    break;
                }
                None => read.is_complete = true,
            }
        }
        read.is_complete |= self.is_end_stream();
        let beginning = read.beginning(most);
        self.ahead = Some(read);
        failure.map_or(Ok(beginning), Err)
    }

    /// Returns the HTTP/2 stream behind the body, for a tunnel.
    pub(crate) fn into_stream(mut self) -> Option<IncomingStream> {
        match &mut self.source {
            Source::Http2 { stream, .. } => stream.take(),
            _ => None,
        }
    }

    /// Returns the HTTP/3 stream behind the body, for a tunnel.
    pub(crate) fn into_http3(mut self) -> Option<RequestBytes> {
        match &mut self.source {
            Source::Http3 { stream, .. } => stream.take(),
            _ => None,
        }
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Discards the rest of an unread body for a while. An upstream may respond before it has the whole request, and a
/// stream reset, even with NO_ERROR, fails the response for some clients (RFC 9113 section 8.1).
impl Drop for ClientBody {
    fn drop(&mut self) {
        let is_ended = self.holder.is_ended();
        match &mut self.source {
            Source::Http1(incoming) => {
                let unread = !self.ended && !incoming.is_end_stream();
                self.connection.left_unread.store(unread, Ordering::Relaxed);
            }
            Source::Http2 { stream, .. } => {
                if let Some(stream) = stream.take().filter(|stream| !is_ended && !stream.is_end_stream()) {
                    linger(discard(stream));
                }
            }
            Source::Http3 { stream, .. } => {
                if let Some(stream) = stream.take().filter(|stream| !is_ended && !stream.is_ended()) {
                    linger(discard_http3(stream));
                }
            }
        }
    }
}

fn linger(discarding: impl Future<Output = ()> + Send + 'static) {
    // Without a runtime, the process is about to exit.
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(timeout(LINGER, discarding));
    }
}

async fn discard_http3(stream: RequestBytes) {
    let mut left = MOST_DISCARDED;
    while let Some(Ok(data)) = poll_fn(|context| stream.poll_data(context)).await {
        left = left.saturating_sub(data.len());
        if left == 0 {
            return;
        }
    }
}

async fn discard(stream: IncomingStream) {
    let mut left = MOST_DISCARDED;
    while let Some(Ok(data)) = poll_fn(|context| stream.poll_data(context)).await {
        left = left.saturating_sub(data.len());
        if left == 0 {
            return;
        }
    }
}

impl Source {
    fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self {
            Self::Http1(incoming) => Pin::new(incoming)
                .poll_frame(context)
                .map_err(|error| ClientBodyError::Broken(error.into()).into()),
            Self::Http2 { stream, .. } => {
                let Some(stream) = stream else { return Poll::Ready(None) };
                stream.poll_frame(context).map_err(|error| ClientBodyError::Broken(error.into()).into())
            }
            Self::Http3 { stream, length, received } => {
                let Some(stream) = stream else { return Poll::Ready(None) };
                let failed = |error: BoxError| Some(Err(ClientBodyError::Broken(error).into()));
                Poll::Ready(match ready!(stream.poll_data(context)) {
                    Some(Ok(data)) => {
                        *received += data.len() as u64;
                        if length.is_some_and(|length| *received > length) {
                            failed(WrongLength.into())
                        } else {
                            Some(Ok(Frame::data(data)))
                        }
                    }
                    Some(Err(error)) => failed(error.into()),
                    None if length.is_some_and(|length| *received < length) => failed(WrongLength.into()),
                    None => {
                        let trailers = stream.take_trailers();
                        trailers.map(|fields| match http3_head::read_trailers(&fields) {
                            Some(trailers) => Ok(Frame::trailers(trailers)),
                            None => Err(ClientBodyError::Broken("invalid trailers".into()).into()),
                        })
                    }
                })
            }
        }
    }
}

impl ClientBody {
    /// Polls the next frame, subject to the timeouts.
    fn poll_in_time(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(ahead) = &mut self.ahead {
            if let Some(frame) = ahead.take_frame() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if ahead.is_complete {
                return Poll::Ready(None);
            }
        }
        let poll = self.source.poll_frame(context);
        if poll.is_ready() && self.due.is_none_or(|due| Instant::now() < due) {
            self.patience.renew();
            return poll;
        }
        ready!(self.patience.poll_exhausted_by(context, self.connection.clock.idle_limit(), self.due));
        Poll::Ready(Some(Err(ClientBodyError::TimedOut.into())))
    }
}

impl Body for ClientBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(self.poll_in_time(context));
        if let Some(Ok(frame)) = &frame {
            self.connection.charges.piece(frame.data_ref().map_or(0, Bytes::len));
        }
        self.ended |= frame.as_ref().is_none_or(|frame| frame.as_ref().is_ok_and(Frame::is_trailers));
        if let (Some(left), Some(Ok(frame))) = (&mut self.left, &frame)
            && let Some(data) = frame.data_ref()
        {
            match left.checked_sub(data.len() as u64) {
                Some(less) => *left = less,
                None => return Poll::Ready(Some(Err(ClientBodyError::TooLarge.into()))),
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        if let Some(ahead) = &self.ahead {
            if !ahead.is_empty() {
                return false;
            }
            if ahead.is_complete {
                return true;
            }
        }
        match &self.source {
            Source::Http1(incoming) => incoming.is_end_stream(),
            Source::Http2 { stream, .. } => stream.as_ref().is_none_or(IncomingStream::is_end_stream),
            // A premature end is reported by `poll_frame`.
            Source::Http3 { stream, length, received } => {
                stream.as_ref().is_none_or(RequestBytes::is_ended)
                    && length.is_none_or(|length| length == *received)
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            // hyper reports the remaining length.
            Source::Http1(incoming) => {
                let ahead = self.ahead.as_ref().map_or(0, |ahead| ahead.bytes()) as u64;
                let left = incoming.size_hint().exact();
                left.map_or_else(SizeHint::default, |left| SizeHint::with_exact(left + ahead))
            }
            Source::Http2 { length: Some(length), .. } | Source::Http3 { length: Some(length), .. } => {
                SizeHint::with_exact(*length)
            }
            Source::Http2 { .. } | Source::Http3 { .. } => SizeHint::default(),
        }
    }
}
