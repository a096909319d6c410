//! An upstream response body, compressed on the fly.

use super::Encoder;
use crate::{
    telemetry::metrics,
    upstream::{self, ExchangeError},
};
use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame};
use quadrille_config::model::ContentCoding;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

/// An upstream response body, compressed on the fly. The encoder is flushed whenever the upstream pauses.
pub(crate) struct CompressedBody {
    body: upstream::ResponseBody,
    /// `None` once the end was written.
    encoder: Option<Encoder>,
    /// Data that was received but is not compressed yet.
    waiting: Bytes,
    /// Whether the encoder holds data that the client could read.
    held: bool,
    /// Whether the upstream's body has ended.
    ended: bool,
    trailers: Option<HeaderMap>,
    coding: ContentCoding,
    /// Number of bytes received, and number of bytes written.
    sizes: [usize; 2],
    /// Number of bytes compressed since the task last yielded.
    in_turn: usize,
}

/// Number of bytes that are compressed at once.
const PIECE: usize = 16 * 1024;
/// Number of bytes that are compressed before the task yields to the event loop, even if more data is ready and the
/// client accepts all of it: with highly compressible data, a connection could run for long otherwise.
const TURN: usize = 4 * PIECE;

impl CompressedBody {
    pub(crate) fn new(body: upstream::ResponseBody, encoder: Encoder) -> Self {
        Self {
            body,
            coding: encoder.coding(),
            encoder: Some(encoder),
            waiting: Bytes::new(),
            held: false,
            ended: false,
            trailers: None,
            sizes: [0; 2],
            in_turn: 0,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.encoder.is_none() && self.trailers.is_none()
    }

    fn let_out(&mut self, out: io::Result<Bytes>) -> Result<Frame<Bytes>, ExchangeError> {
        let out = out.map_err(|error| ExchangeError::Broken(error.into()))?;
        self.sizes[1] += out.len();
        Ok(Frame::data(out))
    }

    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        loop {
            let Some(encoder) = &mut self.encoder else {
                return Poll::Ready(self.trailers.take().map(|trailers| Ok(Frame::trailers(trailers))));
            };
            let out = if !self.waiting.is_empty() {
                if self.in_turn >= TURN {
                    self.in_turn = 0;
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                let length = self.waiting.len().min(PIECE);
                self.in_turn += length;
                let written = encoder.write(&self.waiting[..length]);
                self.waiting.advance(length);
                self.held = true;
                written.map(|()| encoder.take())
            } else if self.ended {
                let rest = encoder.take();
                self.encoder.take().map_or(Ok(Bytes::new()), Encoder::finish).map(|end| joined(rest, end))
            } else {
                match Pin::new(&mut self.body).poll_frame(context) {
                    Poll::Ready(None) => self.ended = true,
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) => {
                            self.sizes[0] += data.len();
                            self.waiting = data;
                        }
                        Err(frame) => {
                            self.trailers = frame.into_trailers().ok();
                            self.ended = true;
                        }
                    },
                    Poll::Pending if !self.held => {
                        self.in_turn = 0;
                        return Poll::Pending;
                    }
                    Poll::Pending => {
                        self.held = false;
                        match encoder.flush().map(|()| encoder.take()) {
                            // The next data from the upstream wakes the task, which polls again before it waits.
                            Ok(out) if out.is_empty() => return Poll::Pending,
                            out => return Poll::Ready(Some(self.let_out(out))),
                        }
                    }
                }
                continue;
            };
            match out {
                Ok(out) if out.is_empty() => {}
                out => return Poll::Ready(Some(self.let_out(out))),
            }
        }
    }
}

/// Counts the bytes saved when the body is dropped.
impl Drop for CompressedBody {
    fn drop(&mut self) {
        metrics::compressed(self.coding.name(), self.sizes);
    }
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    if first.is_empty() { second } else { [first, second].concat().into() }
}
