//! Writer of a request to an endpoint (RFC 9112 sections 3, 5 and 7.1).

use crate::{
    connection::PooledBuffer,
    upstream::{
        connect::connector::ServerStream,
        exchange::{
            error::{ClientBodyError, ExchangeError},
            request_body::{BoxError, RequestBody},
        },
    },
};
use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, Request, Version, header, request::Parts, uri::PathAndQuery};
use http_body::Body;
use std::{
    io::{self, Write},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// Maximum size of body pieces that are collected; larger ones are sent without a copy.
const COLLECTED: usize = 16 * 1024;

/// Sends one request.
pub(super) struct RequestWriter {
    /// Data sent first: the header, small pieces of the body, and chunk framing.
    collected: PooledBuffer,
    /// Data sent after `collected`.
    piece: Bytes,
    /// Whether a line end follows the piece.
    chunk_is_open: bool,
    body: RequestBody,
    framing: Framing,
    /// Whether the server has read a byte.
    pub(super) begun: bool,
}

/// Framing of the request's body.
#[derive(Clone, Copy)]
enum Framing {
    /// Number of remaining bytes.
    Length(u64),
    Chunked,
    Complete,
}

/// Reason for an incomplete request.
pub(super) enum WriteError {
    /// The server no longer reads, but may still send a response.
    Server(io::Error),
    Client(ClientBodyError),
}

impl From<WriteError> for ExchangeError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Server(error) => Self::Broken(error.into()),
            WriteError::Client(error) => Self::Client(error),
        }
    }
}

impl RequestWriter {
    /// Creates a writer without sending anything.
    ///
    /// # Errors
    /// Returns an error if the body cannot be framed.
    pub(super) fn new(request: Request<RequestBody>) -> Result<Self, WriteError> {
        let (parts, body) = request.into_parts();
        let framing = match (body.is_end_stream(), body.size_hint().exact()) {
            (true, _) => Framing::Complete,
            (false, Some(length)) => Framing::Length(length),
            (false, None) if parts.version == Version::HTTP_10 => {
                return Err(invalid("unknown length, and HTTP/1.0 has no chunked coding"));
            }
            (false, None) => Framing::Chunked,
        };
        let mut this = Self {
            collected: PooledBuffer::default(),
            piece: Bytes::new(),
            chunk_is_open: false,
            body,
            framing,
            begun: false,
        };
        let written = this.collected.fill(usize::MAX, |room| {
            let mut rest = room.initialize_unfilled();
            let before = rest.len();
            let written = write_head(&mut rest, &parts, framing).map(|()| before - rest.len());
            room.advance(*written.as_ref().unwrap_or(&0));
            written
        });
        if written.is_err() {
            let mut head = Vec::new();
            // Writing to memory does not fail.
            let _ = write_head(&mut head, &parts, framing);
            this.piece = head.into();
        }
        Ok(this)
    }

    /// Sends the data that can be sent; ready once all is sent.
    pub(super) fn poll(
        &mut self,
        stream: &mut ServerStream,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), WriteError>> {
        loop {
            let waits_for_client = self.poll_collect(context)?.is_pending();
            ready!(self.poll_send(stream, context)).map_err(WriteError::Server)?;
            if self.is_complete() || waits_for_client {
                // Data written over TLS is buffered until the flush.
                ready!(Pin::new(&mut *stream).poll_flush(context)).map_err(WriteError::Server)?;
                return if self.is_complete() { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.framing, Framing::Complete) && self.collected.is_empty() && self.piece.is_empty()
    }

    /// Collects pieces of the body until there is enough to send; pending if the client has to send more first.
    fn poll_collect(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, WriteError> {
        while !matches!(self.framing, Framing::Complete)
            && self.piece.is_empty()
            && self.collected.bytes().len() < COLLECTED
        {
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) else {
                return Ok(Poll::Pending);
            };
            match frame.transpose().map_err(|error| WriteError::Client(client_error(error)))? {
                None => self.end(None)?,
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.add(data)?,
                    Err(frame) => self.end(frame.trailers_ref())?,
                },
            }
        }
        Ok(Poll::Ready(()))
    }

    fn add(&mut self, data: Bytes) -> Result<(), WriteError> {
        match &mut self.framing {
            Framing::Chunked if data.is_empty() => return Ok(()),
            Framing::Chunked => {
                self.collected.put(format!("{:x}\r\n", data.len()).as_bytes());
                self.chunk_is_open = true;
            }
            Framing::Length(left) => {
                let after = left.checked_sub(data.len() as u64);
                *left = after.ok_or_else(|| invalid("longer than announced"))?;
                if *left == 0 {
                    self.framing = Framing::Complete;
                }
            }
            Framing::Complete => return Ok(()),
        }
        // There is room, as only small pieces are collected.
        if data.len() <= COLLECTED {
            self.collected.put(&data);
            if std::mem::take(&mut self.chunk_is_open) {
                self.collected.put(b"\r\n");
            }
        } else {
            self.piece = data;
        }
        Ok(())
    }

    /// Handles the end of the body.
    fn end(&mut self, trailers: Option<&HeaderMap>) -> Result<(), WriteError> {
        match self.framing {
            Framing::Length(_) => return Err(invalid("shorter than announced")),
            Framing::Chunked => {
                let mut end = b"0\r\n".to_vec();
                for (name, value) in trailers.into_iter().flatten().filter(|(name, _)| may_be_a_trailer(name))
                {
                    end.extend_from_slice(
                        &[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat(),
                    );
                }
                end.extend_from_slice(b"\r\n");
                self.piece = end.into();
            }
            Framing::Complete => {}
        }
        self.framing = Framing::Complete;
        Ok(())
    }

    fn poll_send(&mut self, stream: &mut ServerStream, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while !self.collected.is_empty() {
                let count = ready!(Pin::new(&mut *stream).poll_write(context, self.collected.bytes()))?;
                self.collected.consume(taken(count)?);
                self.begun = true;
            }
            while !self.piece.is_empty() {
                let count = ready!(Pin::new(&mut *stream).poll_write(context, &self.piece))?;
                self.piece.advance(taken(count)?);
                self.begun = true;
            }
            if !std::mem::take(&mut self.chunk_is_open) {
                return Poll::Ready(Ok(()));
            }
            self.collected.put(b"\r\n");
        }
    }
}

fn taken(count: usize) -> io::Result<usize> {
    if count == 0 { Err(io::ErrorKind::WriteZero.into()) } else { Ok(count) }
}

/// Returns whether a field may be a trailer: framing and routing fields must not be (RFC 9110 section 6.5.1).
fn may_be_a_trailer(name: &HeaderName) -> bool {
    ![header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::HOST, header::TRAILER].contains(name)
}

fn invalid(problem: &'static str) -> WriteError {
    WriteError::Client(ClientBodyError::Broken(problem.into()))
}

fn client_error(error: BoxError) -> ClientBodyError {
    error.downcast().map_or_else(ClientBodyError::Broken, |error| *error)
}

/// Writes the request line and the fields. The body's length comes from its framing.
fn write_head(out: &mut impl Write, parts: &Parts, framing: Framing) -> io::Result<()> {
    out.write_all(parts.method.as_str().as_bytes())?;
    out.write_all(b" ")?;
    out.write_all(parts.uri.path_and_query().map_or("/", PathAndQuery::as_str).as_bytes())?;
    out.write_all(if parts.version == Version::HTTP_10 { b" HTTP/1.0\r\n" } else { b" HTTP/1.1\r\n" })?;
    for (name, value) in &parts.headers {
        let says_length = *name == header::CONTENT_LENGTH || *name == header::TRANSFER_ENCODING;
        // A length of 0 is allowed for an empty body, and required for some methods (RFC 9110 section 8.6).
        let empty = matches!(framing, Framing::Complete) && *name == header::CONTENT_LENGTH && value == "0";
        if !says_length || empty {
            for piece in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.write_all(piece)?;
            }
        }
    }
    match framing {
        Framing::Length(length) => write!(out, "content-length: {length}\r\n")?,
        Framing::Chunked => out.write_all(b"transfer-encoding: chunked\r\n")?,
        Framing::Complete => {}
    }
    out.write_all(b"\r\n")
}
