//! What a connection knows of one of its requests under way.

use super::priority::Priority;
use quiche::h3::Header;
use std::task::Waker;

/// What the connection knows of a request under way.
#[derive(Default)]
pub(super) struct StreamState {
    /// Who reads the body.
    pub(super) reader: Option<Waker>,
    /// Who sends the response, or waits for the client to give it up.
    pub(super) writer: Option<Waker>,
    /// How urgent the response is.
    pub(super) priority: Priority,
    /// All of the request was read.
    pub(super) ended: bool,
    pub(super) trailers: Option<Vec<Header>>,
    /// The client has given it up, or is gone.
    pub(super) reset: bool,
    /// Ends that somebody has: the body and the response.
    pub(super) held: u8,
}

impl StreamState {
    pub(super) fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    pub(super) fn wake_writer(&mut self) {
        self.writer.take().into_iter().for_each(Waker::wake);
    }

    /// Fields have come behind the data.
    pub(super) fn take_trailers(&mut self, trailers: Vec<Header>) {
        self.trailers = Some(trailers);
        self.wake_reader();
    }

    /// All of the request was read.
    pub(super) fn finish(&mut self) {
        self.ended = true;
        self.wake_reader();
    }

    /// The client has given it up, or is gone.
    pub(super) fn reset(&mut self) {
        self.reset = true;
        self.wake_reader();
        self.wake_writer();
    }
}
