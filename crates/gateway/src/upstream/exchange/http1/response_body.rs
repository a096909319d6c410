//! Response body of an HTTP/1.1 exchange.

use super::{
    Http1Connection,
    body_decoder::BodyDecoder,
    chunked::Part,
    request_writer::{RequestWriter, WriteError},
    response_head::ResponseHead,
};
use crate::upstream::{
    connect::connector::ServerStream,
    exchange::error::{ExchangeError, Watchdog},
};
use bytes::{Bytes, BytesMut};
use http::{Response, StatusCode};
use http_body::{Body, Frame, SizeHint};
use std::{
    io,
    pin::{Pin, pin},
    task::{Context, Poll, ready},
};
use tokio::io::AsyncReadExt;

/// Size of a read, which adapts to the available data between these bounds.
const FIRST_READ: usize = 16 * 1024;
const LARGEST_READ: usize = 128 * 1024;

/// Body of a response. The connection returns to its pool when it is complete.
pub(crate) struct Http1Body {
    decoder: BodyDecoder,
    /// Data that was read and not decoded yet.
    input: Bytes,
    /// Reader of data that was not received with the header.
    reader: Option<Box<Reader>>,
    /// `None` once the body is complete, or has failed.
    connection: Option<Box<Http1Connection>>,
    /// Rest of the request, if it is not sent completely.
    writer: Option<Box<RequestWriter>>,
    persists: bool,
    watchdog: Watchdog,
}

impl Http1Body {
    pub(super) fn response(
        head: ResponseHead,
        input: Bytes,
        connection: Box<Http1Connection>,
        writer: Option<Box<RequestWriter>>,
        watchdog: Watchdog,
    ) -> Response<Self> {
        let mut body = Self {
            decoder: head.body,
            input,
            reader: None,
            connection: Some(connection),
            writer,
            persists: head.persists,
            watchdog,
        };
        if head.status != StatusCode::SWITCHING_PROTOCOLS {
            body.release_if_complete();
        }
        let mut response = Response::new(body);
        *response.status_mut() = head.status;
        *response.headers_mut() = head.headers;
        response
    }

    /// Returns the connection after a 101, and the data received after the response's header; `None` if the request is
    /// not sent completely, whose rest would become a part of the tunnel.
    pub(in crate::upstream) fn into_stream(self) -> Option<(ServerStream, Bytes)> {
        if self.writer.is_some() {
            return None;
        }
        Some((self.connection?.stream, self.input))
    }

    /// Returns the connection to its pool after the exchange, unless either side has more to send.
    fn release_if_complete(&mut self) {
        if !self.decoder.is_complete() {
            return;
        }
        if let Some(connection) = self.connection.take()
            && self.persists
            && self.writer.is_none()
            && self.input.is_empty()
        {
            connection.release();
        }
    }

    fn poll_part(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Part, ExchangeError>>> {
        loop {
            if let Some(part) = self.decoder.decode(&mut self.input).map_err(ExchangeError::malformed)? {
                self.watchdog.renew();
                self.release_if_complete();
                return Poll::Ready(Some(Ok(part)));
            }
            self.release_if_complete();
            let Some(connection) = &mut self.connection else { return Poll::Ready(None) };
            if let Some(writer) = &mut self.writer
                && let Poll::Ready(outcome) = writer.poll(&mut connection.stream, context)
            {
                self.writer = None;
                match outcome {
                    Ok(()) => {}
                    // The server may respond without having read everything.
                    Err(WriteError::Server(_)) => self.persists = false,
                    Err(error) => return Poll::Ready(Some(Err(error.into()))),
                }
            }
            let reader = self.reader.get_or_insert_default();
            match reader.poll_read(&mut connection.stream, context) {
                Poll::Pending => {
                    let error = ready!(self.watchdog.poll_overdue(context, &mut connection.alarm));
                    return Poll::Ready(Some(Err(error)));
                }
                Poll::Ready(Err(error)) => {
                    return Poll::Ready(Some(Err(ExchangeError::Broken(error.into()))));
                }
                Poll::Ready(Ok(input)) if input.is_empty() => {
                    self.persists = false;
                    self.decoder.end().map_err(ExchangeError::malformed)?;
                }
                Poll::Ready(Ok(input)) => self.input = input,
            }
        }
    }
}

/// Reads in pieces that adapt to the available data.
struct Reader {
    room: BytesMut,
    size: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self { room: BytesMut::new(), size: FIRST_READ }
    }
}

impl Reader {
    /// Returns the data read; empty at the end.
    fn poll_read(&mut self, stream: &mut ServerStream, context: &mut Context<'_>) -> Poll<io::Result<Bytes>> {
        if self.room.capacity() < self.size / 4 {
            self.room = BytesMut::with_capacity(self.size);
        }
        let most = self.room.capacity();
        let count = ready!(pin!(stream.read_buf(&mut self.room)).poll(context))?;
        if count == most {
            self.size = LARGEST_READ.min(self.size * 2);
        }
        Poll::Ready(Ok(self.room.split().freeze()))
    }
}

impl Body for Http1Body {
    type Data = Bytes;
    type Error = ExchangeError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ExchangeError>>> {
        let part = ready!(self.poll_part(context)).transpose();
        if part.is_err() {
            self.connection = None;
        }
        Poll::Ready(part.transpose().map(|part| {
            part.map(|part| match part {
                Part::Data(data) => Frame::data(data),
                Part::Trailers(trailers) => Frame::trailers(trailers),
            })
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.decoder.is_complete()
    }

    fn size_hint(&self) -> SizeHint {
        self.decoder.size_hint()
    }
}
