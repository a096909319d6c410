//! Client side of a connection without I/O: converts operations to requests, and replies to verified results.

use super::{
    error::SessionError,
    keep_alive::{KeepAlive, SilenceTimer, Verdict},
    operation::RemoteOperation,
    requests::{Completion, Requests},
};
use crate::wire::{Incoming, Message, Mode, Reader, Violation, WINDOW, Writer, opcode};
use std::time::{Duration, Instant};

/// Client side of one connection. The driver sends [unsent](Self::unsent) bytes, passes [received](Self::receive)
/// ones, takes [events](Self::next_event), and calls [`tick`](Self::tick) when it is [due](Self::due).
pub struct ClientSession<O> {
    reader: Reader,
    writer: Writer,
    requests: Requests<O>,
    silence: SilenceTimer,
    /// Time of the first ping, until its pong.
    first_ping: Option<Instant>,
}

/// Event on a connection.
#[derive(Debug)]
pub enum ClientEvent<O> {
    /// The server has responded to the first ping, so it accepts this client. Occurs with [`KeepAlive::Pings`] only,
    /// once.
    Established {
        /// Time from the first ping to its pong.
        round_trip: Duration,
    },
    /// A request has ended.
    Completed(Completion<O>),
}

/// Maximum number of bytes kept for a server that does not read.
const MAX_UNSENT: usize = 256 * 1024;

const PING: Message<'static> = Message::Ping { id: 0, data: b"" };

impl<O: RemoteOperation> ClientSession<O> {
    /// Creates the session of a new connection in this mode. Frames of the batched mode are `padded` on request;
    /// packets of the compatible mode always are.
    pub fn new(now: Instant, mode: Mode, padded: bool, keep_alive: KeepAlive) -> Self {
        let mut writer = Writer::new(mode);
        writer.set_padded(padded);
        let silence = SilenceTimer::new(now, keep_alive);
        let first_ping = silence.sends_pings().then_some(now);
        if first_ping.is_some() {
            writer.put(&PING);
        }
        Self { reader: Reader::new(mode), writer, requests: Requests::new(), silence, first_ping }
    }

    /// Returns whether one more request may be submitted: the server's window is open, and it reads its input.
    pub fn has_room(&self) -> bool {
        self.requests.len() < WINDOW && self.writer.len() < MAX_UNSENT
    }

    /// Queues the request of an operation, and returns its id. Its completion is an event, at the latest at the
    /// deadline. `None` if there is no [room](Self::has_room), or its payload is longer than
    /// [`MAX_PAYLOAD`](crate::wire::MAX_PAYLOAD).
    pub fn submit(&mut self, now: Instant, operation: O, deadline: Option<Instant>) -> Option<u32> {
        if !self.has_room() {
            return None;
        }
        let id = self.requests.new_id();
        if !self.writer.put(&Message::Request(operation.request(id))) {
            return None;
        }
        if operation.is_secret() {
            self.reader.wipe();
        }
        if self.requests.len() == 0 {
            self.silence.first_request(now);
        }
        self.requests.insert(id, now, operation, deadline);
        Some(id)
    }

    /// Withdraws this request. The server is notified if the mode has a message for it, and replies nevertheless.
    pub fn withdraw(&mut self, id: u32) {
        if self.requests.withdraw(id) {
            self.writer.put(&Message::Withdraw { id });
        }
    }

    /// Passes received bytes. Call [`next_event`](Self::next_event) until it returns `None` before the next bytes.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.silence.received(now);
        self.reader.receive(bytes);
    }

    /// Returns the next event: received messages first, then expired deadlines.
    ///
    /// # Errors
    /// If the server has violated the protocol or returned a wrong result; the connection must be closed.
    pub fn next_event(&mut self, now: Instant) -> Result<Option<ClientEvent<O>>, SessionError> {
        while let Some(incoming) = self.reader.next_message()? {
            match incoming {
                Incoming::Message(Message::Reply { id, result }) => {
                    if let Some(completion) = self.requests.answer(now, id, result)? {
                        return Ok(Some(ClientEvent::Completed(completion)));
                    }
                }
                Incoming::Message(Message::Pong { .. }) => {
                    if let Some(pinged) = self.first_ping.take() {
                        let round_trip = now.saturating_duration_since(pinged);
                        return Ok(Some(ClientEvent::Established { round_trip }));
                    }
                }
                Incoming::Message(Message::Ping { id, data }) => {
                    // No pong is sent to a server that does not read.
                    if self.writer.len() < MAX_UNSENT {
                        self.writer.put(&Message::Pong { id, data });
                    }
                }
                Incoming::Message(Message::Request(request)) => {
                    return Err(Violation::WrongSide(request.opcode).into());
                }
                Incoming::Message(Message::Withdraw { .. }) => {
                    return Err(Violation::WrongSide(opcode::WITHDRAW).into());
                }
                Incoming::Malformed { .. } => return Err(Violation::Lengths.into()),
            }
        }
        Ok(self.requests.expire_one(now).map(|(id, completion)| {
            self.writer.put(&Message::Withdraw { id });
            ClientEvent::Completed(completion)
        }))
    }

    /// Time at which [`tick`](Self::tick) and [`next_event`](Self::next_event) must be called even if nothing was
    /// received.
    pub fn due(&self) -> Option<Instant> {
        let silence = self.silence.due(self.requests.len() > 0);
        silence.into_iter().chain(self.requests.next_deadline()).min()
    }

    /// Processes timeouts: pings a silent server.
    ///
    /// # Errors
    /// If it has been silent for too long; the connection must be closed.
    pub fn tick(&mut self, now: Instant) -> Result<(), SessionError> {
        match self.silence.tick(now, self.requests.len() > 0) {
            Verdict::Wait => Ok(()),
            Verdict::Ping => {
                self.writer.put(&PING);
                Ok(())
            }
            Verdict::Dead => Err(SessionError::Silent),
        }
    }

    /// Returns whether there are bytes to send.
    pub fn has_unsent(&self) -> bool {
        !self.writer.is_empty()
    }

    /// Bytes to send.
    pub fn unsent(&mut self) -> &[u8] {
        self.writer.unsent()
    }

    /// Marks bytes as sent.
    pub fn advance(&mut self, count: usize) {
        self.writer.advance(count);
    }

    /// Number of requests without a reply.
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// Returns the operations for another server after the connection has ended: those not completed or withdrawn, in
    /// the order of submission.
    pub fn into_operations(self) -> Vec<O> {
        self.requests.into_operations()
    }
}
