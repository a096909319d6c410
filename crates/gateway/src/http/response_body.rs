//! The body of a response on its way to the client.

use super::{
    compression::{CompressedBody, Encoder},
    exchange::Exchange,
};
use crate::upstream::{self, ExchangeError};
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

/// The body of a response. The exchange is over when it is dropped.
pub(super) struct ResponseBody {
    source: Source,
    exchange: Option<Box<Exchange>>,
}

enum Source {
    Whole(Bytes),
    Forwarded(upstream::ResponseBody),
    Compressed(Box<CompressedBody>),
}

impl ResponseBody {
    /// A body of our own.
    pub(super) fn whole(body: Bytes, exchange: Box<Exchange>) -> Self {
        Self { source: Source::Whole(body), exchange: Some(exchange) }
    }

    /// None, of a response behind which a tunnel begins.
    pub(super) fn none() -> Self {
        Self { source: Source::Whole(Bytes::new()), exchange: None }
    }

    /// A server's, in fewer bytes.
    pub(super) fn compressed(
        body: upstream::ResponseBody,
        encoder: Encoder,
        exchange: Box<Exchange>,
    ) -> Self {
        let body = Box::new(CompressedBody::new(body, encoder));
        Self { source: Source::Compressed(body), exchange: Some(exchange) }
    }

    /// A server's.
    pub(super) fn forwarded(body: upstream::ResponseBody, exchange: Box<Exchange>) -> Self {
        Self { source: Source::Forwarded(body), exchange: Some(exchange) }
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
        Poll::Ready(frame)
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
