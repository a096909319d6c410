//! Client connection with or without TLS, as used by HTTP: with timeouts, and with small writes collected into full
//! TLS records.

use super::write_buffer::WriteBuffer;
use crate::{
    connection::{Alarm, Connection, Patience},
    tls::{Transport, handshake::early_data},
};
use boring::ssl::SslRef;
use bytes::Bytes;
use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll, ready},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_boring::SslStream;

/// A connection for HTTP.
#[derive(Debug)]
pub(crate) struct ClientStream {
    inner: Inner,
    connection: Arc<Connection>,
    http2: bool,
    /// Remaining bytes of the HTTP/2 preface.
    preface: usize,
    /// Bytes to be read again.
    unread: Bytes,
    /// Set while no data arrives.
    read_alarm: Alarm,
    written: WriteBuffer,
    /// Timeout for a client that does not read.
    patience: Patience,
    /// Whether the client did not accept the last write.
    is_stalled: bool,
}

/// Length of `PRI * HTTP/2.0 SM` with its line ends (RFC 9113 section 3.4).
const HTTP2_PREFACE: usize = 24;

/// Number of bytes read after a silence, before a buffer is allocated.
const FIRST_READ: usize = 1024;

/// Layers below HTTP.
#[derive(Debug)]
pub(crate) enum Inner {
    Tls(SslStream<Transport>),
    Plain(Transport),
}

impl Inner {
    fn transport(&self) -> &Transport {
        match self {
            Self::Tls(tls) => tls.get_ref(),
            Self::Plain(transport) => transport,
        }
    }

    fn ssl(&self) -> Option<&SslRef> {
        match self {
            Self::Tls(tls) => Some(tls.ssl()),
            Self::Plain(_) => None,
        }
    }
}

impl ClientStream {
    pub(crate) fn new(inner: Inner, connection: Arc<Connection>, http2: bool) -> Self {
        if http2 {
            connection.clock.begin_header();
        }
        Self {
            inner,
            connection,
            http2,
            preface: if http2 { HTTP2_PREFACE } else { 0 },
            unread: Bytes::new(),
            read_alarm: Alarm::default(),
            written: WriteBuffer::default(),
            patience: Patience::default(),
            is_stalled: false,
        }
    }

    /// Puts bytes back that were read and not used.
    pub(crate) fn unread(&mut self, bytes: Bytes) {
        // An empty `Bytes` may still hold the memory that it was read into.
        self.unread = if bytes.is_empty() { Bytes::new() } else { bytes };
    }

    /// Returns whether there are bytes to be read again.
    pub(crate) fn has_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Becomes ready when data can be read; returns false at the end. No buffer is held while waiting.
    pub(crate) fn poll_readable(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        if !self.unread.is_empty() {
            return Poll::Ready(Ok(true));
        }
        let mut space = [0; FIRST_READ];
        let mut out = ReadBuf::new(&mut space);
        ready!(Pin::new(&mut *self).poll_read(context, &mut out))?;
        self.unread = Bytes::copy_from_slice(out.filled());
        Poll::Ready(Ok(!self.unread.is_empty()))
    }

    /// Returns the number of bytes sent.
    pub(crate) fn sent(&self) -> u64 {
        self.inner.transport().sent()
    }

    /// Returns whether everything written before was sent or is buffered, and this number of bytes fits behind it.
    pub(crate) fn has_room_for(&self, count: usize) -> bool {
        !self.is_stalled && self.written.has_room_for(count)
    }

    /// Announces that the stream is dropped after its shutdown, so that nothing is read between them. With TLS, the
    /// close_notify ends the data, and the close of the socket may send the FIN. Without TLS, the FIN ends the data, and
    /// must precede a reset for bytes of the client that were not read.
    pub(crate) fn closes_after_shutdown(&mut self) {
        if let Inner::Tls(tls) = &mut self.inner {
            tls.get_mut().closes_after_shutdown();
        }
    }

    /// Ready once the close_notify can be written: everything before it was sent, or will be sent with it at once.
    fn poll_before_close_notify(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.written.poll_drain(&mut self.inner, context))?;
        match self.inner.transport().sends_at_once(context) {
            true => Poll::Ready(Ok(())),
            false => Pin::new(&mut self.inner).poll_flush(context),
        }
    }

    /// Records received bytes.
    fn received(&mut self, count: usize) -> io::Result<()> {
        if count > 0 && self.connection.early.load(Ordering::Relaxed) {
            let early = self.inner.ssl().is_some_and(early_data::in_progress);
            self.connection.early.store(early, Ordering::Relaxed);
        }
        let clock = &self.connection.clock;
        if !self.http2 {
            return if count > 0 && clock.received_is_overdue() { Err(overdue()) } else { Ok(()) };
        }
        if self.preface > 0 {
            self.preface = self.preface.saturating_sub(count);
            if self.preface == 0 {
                clock.end_header();
            }
        }
        Ok(())
    }

    /// Returns an error if nothing arrives and a header or the next request is overdue.
    fn poll_overdue(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let clock = &self.connection.clock;
        // An idle HTTP/2 connection is closed by its handler instead.
        let due = clock.header_due().or_else(|| clock.idle_due().filter(|_| !self.http2));
        let Some(due) = due else { return Poll::Pending };
        ready!(self.read_alarm.poll_due(context, due));
        Poll::Ready(Err(overdue()))
    }

    /// Returns an error if the client has not read for too long.
    fn poll_stalled<T>(
        &mut self,
        context: &mut Context<'_>,
        outcome: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        self.is_stalled = outcome.is_pending();
        if !self.is_stalled {
            self.patience.renew();
            return outcome;
        }
        ready!(self.patience.poll_exhausted(context, self.connection.clock.idle_limit()));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read")))
    }
}

fn overdue() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "timed out waiting for the request")
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(out.remaining());
            out.put_slice(&self.unread.split_to(count));
            // They begin a header, regardless of when they arrived.
            return Poll::Ready(self.received(count));
        }
        let before = out.filled().len();
        match Pin::new(&mut self.inner).poll_read(context, out) {
            Poll::Pending => self.poll_overdue(context),
            Poll::Ready(Ok(())) => Poll::Ready(self.received(out.filled().len() - before)),
            failed => failed,
        }
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = this.written.poll_write(&mut this.inner, context, bytes);
        this.poll_stalled(context, outcome)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let outcome = this.written.poll_write_vectored(&mut this.inner, context, slices);
        this.poll_stalled(context, outcome)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = this.written.poll_flush(&mut this.inner, context);
        this.poll_stalled(context, outcome)
    }

    /// Shuts down. A small rest of what was written leaves together with the close_notify.
    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let outcome = match this.poll_before_close_notify(context) {
            Poll::Ready(Ok(())) => Pin::new(&mut this.inner).poll_shutdown(context),
            other => other,
        };
        this.poll_stalled(context, outcome)
    }
}

impl AsyncRead for Inner {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_read(context, out),
            Self::Plain(transport) => Pin::new(transport).poll_read(context, out),
        }
    }
}

impl AsyncWrite for Inner {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
            Self::Plain(transport) => Pin::new(transport).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
            Self::Plain(transport) => Pin::new(transport).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
            Self::Plain(transport) => Pin::new(transport).poll_shutdown(context),
        }
    }
}
