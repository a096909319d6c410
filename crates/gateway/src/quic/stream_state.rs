//! State of a request in progress.

use super::priority::Priority;
use quiche::h3::Header;
use std::task::Waker;

/// State of a request in progress.
#[derive(Default)]
pub(super) struct StreamState {
    /// Task that reads the body.
    pub(super) reader: Option<Waker>,
    /// Task that sends the response, or waits for the client to cancel the request.
    pub(super) writer: Option<Waker>,
    /// Priority of the response.
    pub(super) priority: Priority,
    /// Whether the request was read completely.
    pub(super) ended: bool,
    pub(super) trailers: Option<Vec<Header>>,
    /// Whether the client has canceled the request or disconnected.
    pub(super) reset: bool,
    /// Number of handles in use: the body and the response.
    pub(super) held: u8,
}

impl StreamState {
    pub(super) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(super) fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Stores the trailers.
    pub(super) fn take_trailers(&mut self, trailers: Vec<Header>) {
        self.trailers = Some(trailers);
        self.wake_reader();
    }

    /// Records that the request was read completely.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        self.wake_reader();
    }

    /// Records that the client has canceled the request or disconnected.
    pub(super) fn reset(&mut self) {
        self.reset = true;
        self.wake_reader();
        self.wake_writer();
    }
}
