//! Read-ahead of a body whose beginning must be inspected before it is forwarded.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use std::collections::VecDeque;

/// Data that was read from a body, ahead of the rest.
#[derive(Default)]
pub(crate) struct ReadAhead {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// Whether the body has ended.
    pub(crate) is_complete: bool,
}

impl ReadAhead {
    /// Takes the next frame that was read.
    pub(crate) fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes -= piece.len();
            return Some(Frame::data(piece));
        }
        self.trailers.take().map(Frame::trailers)
    }

    /// Returns whether all of it was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none()
    }

    /// Returns the number of bytes that remain.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => {
                self.bytes += data.len();
                self.pieces.push_back(data);
            }
            Err(frame) => {
                self.trailers = frame.into_trailers().ok();
                self.is_complete = true;
            }
        }
    }

    /// Returns the beginning of the body, up to `most` bytes.
    pub(crate) fn beginning(&self, most: usize) -> Beginning {
        let mut bytes = BytesMut::with_capacity(self.bytes.min(most));
        for piece in &self.pieces {
            let room = most - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Beginning { bytes: bytes.freeze(), is_partial: self.bytes > most }
    }
}

/// The beginning of a body.
pub(crate) struct Beginning {
    pub(crate) bytes: Bytes,
    /// Whether the body has more data, or may have.
    pub(crate) is_partial: bool,
}
