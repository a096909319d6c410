//! The beginning of a body that somebody has to see before it goes on.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use std::collections::VecDeque;

/// What was read of a body, in front of what is still to come.
#[derive(Default)]
pub(super) struct ReadAhead {
    pieces: VecDeque<Bytes>,
    bytes: usize,
    trailers: Option<HeaderMap>,
    /// Nothing is still to come.
    pub(super) is_complete: bool,
}

impl ReadAhead {
    /// The next frame of what was read.
    pub(super) fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(piece) = self.pieces.pop_front() {
            self.bytes -= piece.len();
            return Some(Frame::data(piece));
        }
        self.trailers.take().map(Frame::trailers)
    }

    /// Whether there is nothing of it left.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.trailers.is_none()
    }

    /// Bytes that are left of it.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a frame behind all that is there.
    pub(super) fn push(&mut self, frame: Frame<Bytes>) {
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

    /// The beginning, so many bytes at most.
    pub(super) fn beginning(&self, most: usize) -> Beginning {
        let mut bytes = BytesMut::with_capacity(self.bytes.min(most));
        for piece in &self.pieces {
            let room = most - bytes.len();
            bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        }
        Beginning { bytes: bytes.freeze(), is_partial: self.bytes > most }
    }
}

/// The beginning of a body.
pub(super) struct Beginning {
    pub(super) bytes: Bytes,
    /// There is more, or may be.
    pub(super) is_partial: bool,
}
