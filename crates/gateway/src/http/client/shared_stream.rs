//! A client connection that is shared between an HTTP library and its driver.
//!
//! The libraries flush after every frame. To send the output of one turn of the event loop together, their flushes
//! are ignored, and the driver flushes at the end of the turn.

use crate::tls::ClientStream;
use bytes::Bytes;
use http::Response;
use std::{
    io,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A handle to a connection; clones refer to the same connection.
#[derive(Clone)]
pub(crate) struct SharedStream(Arc<Mutex<Shared>>);

struct Shared {
    stream: ClientStream,
    /// Whether the library's last read found no data, so that the library is woken by the next data or the end.
    library_waits: bool,
}

impl SharedStream {
    pub(crate) fn new(stream: ClientStream) -> Self {
        Self(Arc::new(Mutex::new(Shared { stream, library_waits: false })))
    }

    /// Sends the data that was written.
    pub(crate) fn poll_send(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(context)
    }

    /// Writes an informational response (1xx) of HTTP/1.1 between the library's writes. It is omitted if the client
    /// does not read previous output.
    pub(crate) fn write_informational(&self, context: &mut Context<'_>, response: &Response<()>) {
        let mut text = format!("HTTP/1.1 {}\r\n", response.status()).into_bytes();
        for (name, value) in response.headers() {
            text.extend_from_slice(name.as_str().as_bytes());
            text.extend_from_slice(b": ");
            text.extend_from_slice(value.as_bytes());
            text.extend_from_slice(b"\r\n");
        }
        text.extend_from_slice(b"\r\n");
        let stream = &mut self.lock().stream;
        if !stream.has_room_for(text.len()) {
            return;
        }
        if let Poll::Ready(Err(error)) = Pin::new(stream).poll_write(context, &text) {
            tracing::debug!(%error, "an informational response was not sent");
        }
    }

    /// Returns unused data to the stream, to be read again.
    pub(crate) fn unread(&self, bytes: Bytes) {
        self.lock().stream.unread(bytes);
    }

    /// Ready when there is data to read, or with false at the end of the stream.
    pub(crate) fn poll_readable(&self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        self.lock().stream.poll_readable(context)
    }

    /// Ready at the end of what the client sends, or with the error of the connection, while the library reads
    /// nothing. Data that arrives is left to the library.
    pub(crate) fn poll_end(&self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut shared = self.lock();
        if shared.library_waits || shared.stream.has_unread() {
            return Poll::Pending;
        }
        match ready!(shared.stream.poll_readable(context)) {
            Ok(true) => Poll::Pending,
            Ok(false) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    /// Returns the connection if this is the only handle.
    pub(crate) fn into_inner(self) -> Option<ClientStream> {
        let shared = Arc::into_inner(self.0)?.into_inner();
        Some(shared.unwrap_or_else(PoisonError::into_inner).stream)
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsyncRead for SharedStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.lock();
        let read = Pin::new(&mut shared.stream).poll_read(context, out);
        shared.library_waits = read.is_pending();
        read
    }
}

impl AsyncWrite for SharedStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// Does nothing: the driver flushes.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(context)
    }
}
