//! Read-ahead of a body whose beginning must be inspected before it is forwarded.

use crate::{
    held_bytes::HeldBytes,
    memory::{Holder, Purpose},
};
use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use std::sync::Arc;

/// Data that was read from a body, ahead of the rest.
pub(crate) struct ReadAhead {
    data: HeldBytes,
    trailers: Option<HeaderMap>,
    /// Whether the body has ended.
    pub(crate) is_complete: bool,
}

impl ReadAhead {
    /// Creates an empty read-ahead of an exchange.
    pub(crate) fn new(holder: &Arc<Holder>) -> Self {
        let mut data = HeldBytes::new(Purpose::Inspection);
        data.belongs_to(holder);
        Self { data, trailers: None, is_complete: false }
    }

    /// Takes the next frame that was read.
    pub(crate) fn take_frame(&mut self) -> Option<Frame<Bytes>> {
        if let Some(chunk) = self.data.pop() {
            return Some(Frame::data(chunk));
        }
        self.trailers.take().map(Frame::trailers)
    }

    /// Returns whether all of it was taken.
    pub(crate) fn is_empty(&self) -> bool {
        self.data.is_empty() && self.trailers.is_none()
    }

    /// Returns the number of bytes that remain.
    pub(crate) fn bytes(&self) -> usize {
        self.data.len()
    }

    /// Appends a frame.
    pub(crate) fn push(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => self.data.push(&data),
            Err(frame) => {
                self.trailers = frame.into_trailers().ok();
                self.is_complete = true;
            }
        }
    }

    /// Returns the beginning of the body, up to `most` bytes.
    pub(crate) fn beginning(&self, most: usize) -> Beginning {
        Beginning { bytes: self.data.beginning(most), is_partial: self.data.len() > most }
    }
}

/// The beginning of a body.
pub(crate) struct Beginning {
    pub(crate) bytes: Bytes,
    /// Whether the body has more data, or may have.
    pub(crate) is_partial: bool,
}
