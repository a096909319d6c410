//! Connections of a peer that are being opened, and the requests that wait for them.

use crate::upstream::exchange::http2::Http2Exchange;
use std::io;
use tokio::sync::oneshot;

/// Connections of a peer that are being opened.
#[derive(Default)]
pub(super) struct Openings {
    next: u64,
    list: Vec<Opening>,
}

/// A connection that is being opened.
struct Opening {
    number: u64,
    waiting: Vec<oneshot::Sender<Opened>>,
}

/// A place on the opened connection, or the error.
pub(super) type Opened = Result<Http2Exchange, (io::ErrorKind, String)>;

/// The part of a request in opening a connection.
pub(super) enum Turn {
    /// Another request opens a connection.
    Wait(oneshot::Receiver<Opened>),
    /// This request opens the connection with this number.
    Open(u64),
}

impl Openings {
    /// Waits for a connection with room, of which each has this number of places, or begins another.
    pub(super) fn join(&mut self, places: usize) -> Turn {
        let has_room = |opening: &mut Opening| {
            opening.waiting.retain(|waiting| !waiting.is_closed());
            opening.waiting.len() + 1 < places
        };
        match self.list.iter_mut().find_map(|opening| has_room(opening).then_some(opening)) {
            Some(opening) => {
                let (sender, opened) = oneshot::channel();
                opening.waiting.push(sender);
                Turn::Wait(opened)
            }
            None => Turn::Open(self.begin()),
        }
    }

    pub(super) fn begin(&mut self) -> u64 {
        self.next += 1;
        self.list.push(Opening { number: self.next, waiting: Vec::new() });
        self.next
    }

    /// Returns the requests that wait for the connection.
    pub(super) fn end(&mut self, number: u64) -> Vec<oneshot::Sender<Opened>> {
        let at = self.list.iter().position(|opening| opening.number == number);
        at.map(|at| self.list.swap_remove(at).waiting).unwrap_or_default()
    }
}
