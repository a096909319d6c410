//! Sending of a request's body over HTTP/2.

use super::request_body::{BoxError, RequestBody};
use crate::{held_bytes::HeldBytes, memory::Purpose};
use bytes::Bytes;
use h2::{Reason, SendStream};
use http::HeaderMap;
use http_body::Body;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::task::JoinHandle;

/// Number of bytes from small pieces that are sent in one frame.
const COLLECTED: usize = 16 * 1024;

/// A body on its way to the server. h2 holds what it is given until it is sent, so small pieces are copied together.
pub(super) struct Upload {
    stream: SendStream<Bytes>,
    body: RequestBody,
    collected: HeldBytes,
    trailers: Option<HeaderMap>,
    ended: bool,
}

/// A task that sends a body. Dropping it resets the stream, unless the body was sent completely.
pub(super) struct Sending(JoinHandle<()>);

impl Drop for Sending {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The server does not receive the rest.
struct Cut;

impl Upload {
    pub(super) fn new(stream: SendStream<Bytes>, body: RequestBody) -> Self {
        let collected = HeldBytes::new(Purpose::Upload);
        Self { stream, body, collected, trailers: None, ended: false }
    }

    /// Sends what is available. The rest is sent by a task, since the server may read it while its response is not
    /// read here.
    pub(super) fn begin(mut self: Box<Self>, context: &mut Context<'_>) -> Option<Sending> {
        Pin::new(&mut *self).poll(context).is_pending().then(|| Sending(tokio::spawn(self)))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        loop {
            if self.stream.poll_reset(context).is_ready() {
                return Poll::Ready(Err(Cut));
            }
            if self.collected.is_empty() && !self.ended {
                ready!(self.poll_collect(context))?;
            }
            if self.collected.is_empty() {
                if self.ended {
                    return Poll::Ready(self.finish());
                }
                continue;
            }
            ready!(self.poll_room(context))?;
            // Only now, since a body that waits for its client must not have unsent data.
            let mut waits = false;
            while !waits && !self.ended && self.collected.len() < COLLECTED {
                waits = match self.poll_collect(context) {
                    Poll::Ready(collected) => collected.map(|()| false)?,
                    Poll::Pending => true,
                };
            }
            if self.send_collected()? {
                return Poll::Ready(Ok(()));
            }
            if waits {
                return Poll::Pending;
            }
        }
    }

    /// Takes a frame of the body.
    fn poll_collect(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        match ready!(Pin::new(&mut self.body).poll_frame(context)).transpose() {
            Err(error) => {
                self.stream.send_reset(reason(&error));
                return Poll::Ready(Err(Cut));
            }
            Ok(None) => self.ended = true,
            Ok(Some(frame)) => match frame.into_data() {
                Ok(data) => {
                    self.collected.push(&data);
                    self.ended = self.body.is_end_stream();
                }
                Err(frame) => (self.trailers, self.ended) = (frame.into_trailers().ok(), true),
            },
        }
        Poll::Ready(Ok(()))
    }

    /// Waits until the server's window has room for a byte. More is not reserved, since that would take it from other
    /// streams.
    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Cut>> {
        self.stream.reserve_capacity(1);
        while self.stream.capacity() == 0 {
            match ready!(self.stream.poll_capacity(context)) {
                Some(Ok(_)) => {}
                _ => return Poll::Ready(Err(Cut)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the collected data. Returns whether that was the end.
    fn send_collected(&mut self) -> Result<bool, Cut> {
        while let Some(data) = self.collected.pop() {
            let last = self.ended && self.trailers.is_none() && self.collected.is_empty();
            self.stream.send_data(data, last).map_err(|_| Cut)?;
            if last {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn finish(&mut self) -> Result<(), Cut> {
        // Capacity that is not needed belongs to other streams.
        self.stream.reserve_capacity(0);
        let sent = match self.trailers.take() {
            Some(trailers) => self.stream.send_trailers(trailers),
            None => self.stream.send_data(Bytes::new(), true),
        };
        sent.map_err(|_| Cut)
    }
}

impl Future for Upload {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll_send(context).map(drop)
    }
}

/// Returns the code that resets the stream after an error of the body.
fn reason(error: &BoxError) -> Reason {
    error.downcast_ref().and_then(h2::Error::reason).unwrap_or(Reason::INTERNAL_ERROR)
}
