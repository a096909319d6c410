//! Response bodies on their way to the client.

use super::compression::{CompressedBody, Encoder};
use crate::{
    http::exchange::Exchange,
    memory::Holder,
    upstream::{self, ExchangeError},
};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

/// The body of a response. The exchange ends when it is dropped.
pub(crate) struct ResponseBody {
    source: Source,
    exchange: Option<Box<Exchange>>,
}

enum Source {
    Whole(Bytes),
    Forwarded(upstream::ResponseBody),
    Compressed(Box<CompressedBody>),
}

impl ResponseBody {
    /// The body of a local response.
    pub(crate) fn whole(body: Bytes, exchange: Box<Exchange>) -> Self {
        Self { source: Source::Whole(body), exchange: Some(exchange) }
    }

    /// An empty body, for a response that opens a tunnel.
    pub(crate) fn none() -> Self {
        Self { source: Source::Whole(Bytes::new()), exchange: None }
    }

    /// An upstream's body that is compressed.
    pub(crate) fn compressed(
        body: upstream::ResponseBody,
        encoder: Encoder,
        exchange: Box<Exchange>,
    ) -> Self {
        let body = Box::new(CompressedBody::new(body, encoder));
        Self { source: Source::Compressed(body), exchange: Some(exchange) }
    }

    /// An upstream's body.
    pub(crate) fn forwarded(body: upstream::ResponseBody, exchange: Box<Exchange>) -> Self {
        Self { source: Source::Forwarded(body), exchange: Some(exchange) }
    }

    /// Returns the exchange that the body belongs to.
    pub(crate) fn holder(&self) -> Option<&Arc<Holder>> {
        self.exchange.as_ref().map(|exchange| &exchange.holder)
    }

    /// Removes the trailers that are not forwarded.
    fn filter(&self, frame: Frame<Bytes>) -> Option<Frame<Bytes>> {
        match frame.into_trailers() {
            Ok(trailers) => self.exchange.as_ref()?.trailers.filter(trailers).map(Frame::trailers),
            Err(data) => Some(data),
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let this = &mut *self;
        let frame = match &mut this.source {
            Source::Whole(body) if body.is_empty() => None,
            Source::Whole(body) => Some(Ok(Frame::data(std::mem::take(body)))),
            Source::Forwarded(body) => ready!(Pin::new(body).poll_frame(context)),
            Source::Compressed(body) => ready!(body.poll_frame(context)),
        };
        if let (Some(frame), Some(exchange)) = (&frame, &mut this.exchange) {
            match frame {
                Ok(frame) => exchange.bytes += frame.data_ref().map_or(0, Bytes::len),
                Err(error) => exchange.fail(error, "a response was cut short"),
            }
        }
        let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
        Poll::Ready(this.filter(frame).map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            Source::Whole(body) => body.is_empty(),
            Source::Forwarded(body) => body.is_end_stream(),
            Source::Compressed(body) => body.is_over(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Whole(body) => SizeHint::with_exact(body.len() as u64),
            Source::Forwarded(body) => body.size_hint(),
            Source::Compressed(_) => SizeHint::default(),
        }
    }
}
