//! Write buffer that collects small writes into full TLS records (RFC 8446 section 5.1).

use crate::connection::PooledBuffer;
use std::{
    io::{self, ErrorKind, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
};
use tokio::io::AsyncWrite;

/// Maximum plaintext length of a record.
const RECORD: usize = 16 * 1024;

/// Plaintext of an incomplete record that has not been flushed.
#[derive(Debug, Default)]
pub(crate) struct WriteBuffer(PooledBuffer);

impl WriteBuffer {
    /// Accepts as many bytes as fit. Full records with nothing before them are passed on without a copy.
    pub(crate) fn poll_write(
        &mut self,
        inner: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.0.is_empty() && bytes.len() >= RECORD {
            return Pin::new(inner).poll_write(context, bytes);
        }
        if self.room() == 0 {
            ready!(self.poll_drain(inner, context))?;
            return self.poll_write(inner, context, bytes);
        }
        let taken = bytes.len().min(self.room());
        Poll::Ready(Ok(self.0.put(&bytes[..taken])))
    }

    /// Returns the free space in the record.
    fn room(&self) -> usize {
        RECORD.saturating_sub(self.0.bytes().len())
    }

    /// Accepts several slices; blocks only if nothing was accepted.
    pub(crate) fn poll_write_vectored(
        &mut self,
        inner: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut total = 0;
        for slice in slices {
            let mut rest = &slice[..];
            while !rest.is_empty() {
                match self.poll_write(inner, context, rest) {
                    Poll::Ready(Ok(count)) if count > 0 => {
                        total += count;
                        rest = &rest[count..];
                    }
                    // An error after a partial write is returned by the next call.
                    _ if total > 0 => return Poll::Ready(Ok(total)),
                    other => return other,
                }
            }
        }
        Poll::Ready(Ok(total))
    }

    /// Returns whether this number of bytes is accepted at once, without waiting for the peer.
    pub(crate) fn has_room_for(&self, count: usize) -> bool {
        count <= self.room()
    }

    pub(crate) fn poll_flush(
        &mut self,
        inner: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_drain(inner, context))?;
        Pin::new(inner).poll_flush(context)
    }

    /// Passes on everything that is buffered, without a flush.
    pub(crate) fn poll_drain(
        &mut self,
        inner: &mut (impl AsyncWrite + Unpin),
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        while !self.0.is_empty() {
            match ready!(Pin::new(&mut *inner).poll_write(context, self.0.bytes()))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => self.0.consume(count),
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// A peer that accepts `room` bytes per call while it is open.
    struct Peer {
        seen: Vec<Vec<u8>>,
        room: usize,
        open: bool,
    }

    impl AsyncWrite for Peer {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            bytes: &[u8],
        ) -> Poll<io::Result<usize>> {
            if !self.open {
                return Poll::Pending;
            }
            let taken = bytes.len().min(self.room);
            self.seen.push(bytes[..taken].to_vec());
            Poll::Ready(Ok(taken))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    fn peer(room: usize) -> Peer {
        Peer { seen: Vec::new(), room, open: true }
    }

    fn write(buffer: &mut WriteBuffer, peer: &mut Peer, bytes: &[u8]) -> Poll<usize> {
        let context = &mut Context::from_waker(Waker::noop());
        buffer.poll_write(peer, context, bytes).map(|count| count.expect("no error"))
    }

    fn flush(buffer: &mut WriteBuffer, peer: &mut Peer) -> bool {
        let context = &mut Context::from_waker(Waker::noop());
        buffer.poll_flush(peer, context).map(|flushed| flushed.expect("no error")).is_ready()
    }

    #[test]
    fn small_pieces_leave_together() {
        let (mut buffer, mut peer) = (WriteBuffer::default(), peer(usize::MAX));
        for piece in ["head", " and ", "body"] {
            assert_eq!(write(&mut buffer, &mut peer, piece.as_bytes()), Poll::Ready(piece.len()));
        }
        assert!(peer.seen.is_empty());
        assert!(flush(&mut buffer, &mut peer));
        assert_eq!(peer.seen, [b"head and body".to_vec()]);
    }

    #[test]
    fn records_are_filled() {
        let (mut buffer, mut peer) = (WriteBuffer::default(), peer(usize::MAX));
        assert_eq!(write(&mut buffer, &mut peer, &[1; 100]), Poll::Ready(100));
        assert_eq!(write(&mut buffer, &mut peer, &[2; 2 * RECORD]), Poll::Ready(RECORD - 100));
        assert_eq!(write(&mut buffer, &mut peer, &[2; 2 * RECORD]), Poll::Ready(2 * RECORD), "no copy");
        assert!(peer.seen.iter().map(Vec::len).eq([RECORD, 2 * RECORD]));
    }

    #[test]
    fn a_peer_that_takes_nothing_holds_the_writer_up() {
        let (mut buffer, mut peer) = (WriteBuffer::default(), peer(1000));
        peer.open = false;
        assert_eq!(write(&mut buffer, &mut peer, &[3; RECORD - 1]), Poll::Ready(RECORD - 1));
        assert_eq!(write(&mut buffer, &mut peer, &[4; 2]), Poll::Ready(1));
        assert_eq!(write(&mut buffer, &mut peer, &[4; 1]), Poll::Pending);
        assert!(!flush(&mut buffer, &mut peer));
        peer.open = true;
        assert!(flush(&mut buffer, &mut peer));
        let seen = peer.seen.concat();
        assert!(seen.len() == RECORD && seen[RECORD - 1] == 4);
    }
}
