//! A server's body that is compressed on its way.

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

/// A server's body that is compressed on its way. Where the server pauses, all that it has sent so far is let out.
pub(in crate::http) struct CompressedBody {
    body: upstream::ResponseBody,
    /// `None` once the end is out.
    encoder: Option<Encoder>,
    /// What has come and was not compressed yet.
    waiting: Bytes,
    /// Something is inside the encoder that the client could read.
    held: bool,
    /// The server's body has ended.
    ended: bool,
    trailers: Option<HeaderMap>,
    coding: ContentCoding,
    /// Bytes that have come, and that were let out.
    sizes: [usize; 2],
    /// Bytes that were compressed since others had their turn.
    in_turn: usize,
}

/// Bytes that are compressed at once.
const PIECE: usize = 16 * 1024;
/// Bytes that are compressed until others have their turn on the event loop, even if the server's next ones are there and
/// the client takes all: of what shrinks to nothing, a connection could go on for long.
const TURN: usize = 4 * PIECE;

impl CompressedBody {
    pub(in crate::http) fn new(body: upstream::ResponseBody, encoder: Encoder) -> Self {
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

    pub(in crate::http) fn is_over(&self) -> bool {
        self.encoder.is_none() && self.trailers.is_none()
    }

    fn let_out(&mut self, out: io::Result<Bytes>) -> Result<Frame<Bytes>, ExchangeError> {
        let out = out.map_err(|error| ExchangeError::Broken(error.into()))?;
        self.sizes[1] += out.len();
        Ok(Frame::data(out))
    }

    pub(in crate::http) fn poll_frame(
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
                            // The task is woken by the server's next bytes, and asks again before it waits for them.
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

/// What was saved is counted when it is over.
impl Drop for CompressedBody {
    fn drop(&mut self) {
        metrics::compressed(self.coding.name(), self.sizes);
    }
}

fn joined(first: Bytes, second: Bytes) -> Bytes {
    if first.is_empty() { second } else { [first, second].concat().into() }
}
