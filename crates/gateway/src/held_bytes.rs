//! Data that outlives the read that delivered it, without the buffer that it was read into.
//!
//! A `Bytes` keeps its whole read buffer in memory, regardless of its own length: one byte can hold 32 KiB. Code that
//! keeps received data therefore copies small pieces together, and counts what it holds.

use crate::memory::{Held, Holder, Purpose};
use bytes::{Bytes, BytesMut};
use http::HeaderValue;
use std::{collections::VecDeque, sync::Arc};

/// Size from which a piece is kept without a copy. Read buffers have at most a few times this size.
const LARGE: usize = 8 * 1024;

/// Maximum size of a buffer for small pieces. Buffers double until then, so that at most half of the memory is unused.
const LARGEST_BUFFER: usize = 16 * 1024;

/// A queue of received data, which is counted as held memory.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    chunks: VecDeque<Bytes>,
    /// Small pieces after the last chunk, and room for more.
    tail: BytesMut,
    bytes: usize,
    held: Held,
}

impl HeldBytes {
    /// Creates an empty queue.
    pub(crate) fn new(purpose: Purpose) -> Self {
        let (chunks, tail) = (VecDeque::new(), BytesMut::new());
        Self { chunks, tail, bytes: 0, held: Held::nothing(purpose) }
    }

    /// Attributes the data to an exchange.
    pub(crate) fn belongs_to(&mut self, holder: &Arc<Holder>) {
        self.held.belongs_to(holder);
    }

    /// Discards the data, and the memory that it holds.
    pub(crate) fn clear(&mut self) {
        (self.chunks, self.tail, self.bytes) = (VecDeque::new(), BytesMut::new(), 0);
        self.held.set(0);
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Appends a piece.
    pub(crate) fn push(&mut self, piece: &Bytes) {
        self.bytes += piece.len();
        if piece.len() >= LARGE {
            self.seal();
            self.chunks.push_back(piece.clone());
            return self.count();
        }
        let room = self.tail.capacity() - self.tail.len();
        let (fits, rest) = piece.split_at(room.min(piece.len()));
        self.tail.extend_from_slice(fits);
        if !rest.is_empty() {
            self.seal();
            self.tail = BytesMut::with_capacity(self.bytes.min(LARGEST_BUFFER).max(rest.len()));
            self.tail.extend_from_slice(rest);
        }
        self.count();
    }

    /// Removes the first chunk.
    pub(crate) fn pop(&mut self) -> Option<Bytes> {
        if self.chunks.is_empty() {
            self.seal();
        }
        let chunk = self.chunks.pop_front()?;
        self.bytes -= chunk.len();
        if self.bytes == 0 {
            // An empty queue holds no memory.
            self.clear();
        } else {
            self.count();
        }
        Some(chunk)
    }

    /// Returns the data from this position to the end of its chunk; `None` at the end.
    pub(crate) fn at(&mut self, position: usize) -> Option<Bytes> {
        if position >= self.bytes {
            return None;
        }
        self.seal();
        let mut before = position;
        for chunk in &self.chunks {
            if before < chunk.len() {
                return Some(chunk.slice(before..));
            }
            before -= chunk.len();
        }
        None
    }

    /// Copies the beginning, up to `most` bytes.
    pub(crate) fn beginning(&self, most: usize) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.bytes.min(most));
        for chunk in self.chunks.iter().map(|chunk| &chunk[..]).chain([&self.tail[..]]) {
            let room = most - bytes.len();
            bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        bytes.freeze()
    }

    /// Counts the data, and the room for small pieces.
    fn count(&mut self) {
        self.held.set(self.bytes + self.tail.capacity() - self.tail.len());
    }

    /// Makes the small pieces a chunk. The room after them is used for the next pieces.
    fn seal(&mut self) {
        if !self.tail.is_empty() {
            self.chunks.push_back(self.tail.split().freeze());
        }
    }
}

/// Returns a copy of a header value, without the buffer of its header.
pub(crate) fn detached_value(value: &HeaderValue) -> HeaderValue {
    HeaderValue::from_bytes(value.as_bytes()).unwrap_or_else(|_| value.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(sizes: &[usize]) -> Vec<Bytes> {
        let buffer = Bytes::from((0..100_000).map(|at| at as u8).collect::<Vec<_>>());
        let mut at = 0;
        let mut next = |&size: &usize| {
            at += size;
            buffer.slice(at - size..at)
        };
        sizes.iter().map(&mut next).collect()
    }

    #[test]
    fn the_data_is_the_same_in_fewer_pieces() {
        for sizes in [&[1; 500][..], &[9000, 1, 1, 9000, 5000, 5000, 20_000, 3], &[7], &[0, 0], &[]] {
            let pieces = pieces(sizes);
            let mut held = HeldBytes::new(Purpose::Retry);
            pieces.iter().for_each(|piece| held.push(piece));
            let whole = pieces.concat();
            assert_eq!(held.len(), whole.len());
            assert_eq!(held.beginning(usize::MAX), whole);
            assert_eq!(held.beginning(3), whole[..whole.len().min(3)]);
            for position in 0..whole.len() {
                let rest = held.at(position).expect("data");
                assert!(whole[position..].starts_with(&rest) && !rest.is_empty());
            }
            assert_eq!(held.at(whole.len()), None);
            let mut out = Vec::new();
            while let Some(chunk) = held.pop() {
                out.extend_from_slice(&chunk);
            }
            assert!(out == whole && held.is_empty());
        }
    }

    #[test]
    fn single_bytes_hold_no_more_than_twice_their_number() {
        let mut held = HeldBytes::new(Purpose::Retry);
        let mut allocated = 0;
        for piece in pieces(&[1; 65_000]) {
            let before = held.tail.capacity() - held.tail.len();
            held.push(&piece);
            if before == 0 {
                allocated += held.tail.capacity();
            }
        }
        assert!(allocated <= 2 * held.len(), "{allocated} for {}", held.len());
        assert!(held.chunks.len() < 20, "{} chunks", held.chunks.len());
    }
}
