//! The client's end of a connection without I/O: operations become requests, replies become results that have been
//! checked.

use super::{
    error::SessionError,
    keep_alive::{KeepAlive, SilenceTimer, Verdict},
    operation::RemoteOperation,
    requests::{Completion, Requests},
};
use crate::wire::{Incoming, Message, Mode, Reader, Violation, WINDOW, Writer, opcode};
use std::time::{Duration, Instant};

/// The client's end of one connection. The driver sends what is [unsent](Self::unsent), hands over what it
/// [receives](Self::receive), takes [events](Self::next_event), and calls [`tick`](Self::tick) when it is
/// [due](Self::due).
pub struct ClientSession<O> {
    reader: Reader,
    writer: Writer,
    requests: Requests<O>,
    silence: SilenceTimer,
    /// When the first ping was sent, until it is answered.
    first_ping: Option<Instant>,
}

/// What has happened on a connection.
#[derive(Debug)]
pub enum ClientEvent<O> {
    /// The server has answered the first ping, so it accepts this client. Comes with [`KeepAlive::Pings`] only, once.
    Established {
        /// From the first ping to its answer.
        round_trip: Duration,
    },
    /// A request is over.
    Completed(Completion<O>),
}

/// What a server that does not read can make a session keep, in bytes.
const MAX_UNSENT: usize = 256 * 1024;

const PING: Message<'static> = Message::Ping { id: 0, data: b"" };

impl<O: RemoteOperation> ClientSession<O> {
    /// A session of a connection that has just been opened in this mode. Frames of the batched mode are `padded` if
    /// wanted; packets of the compatible mode always are.
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

    /// Whether one more request may be submitted: the server's window is open, and it reads what it is sent.
    pub fn has_room(&self) -> bool {
        self.requests.len() < WINDOW && self.writer.len() < MAX_UNSENT
    }

    /// Puts an operation's request behind what is to be sent, and gives its id. Its completion is an event, at the
    /// latest at the deadline. `None` if there is no [room](Self::has_room), or its payload is longer than
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

    /// Nobody waits for this request any more. The server is told, if the mode has a message for it, and answers
    /// nevertheless.
    pub fn withdraw(&mut self, id: u32) {
        if self.requests.withdraw(id) {
            self.writer.put(&Message::Withdraw { id });
        }
    }

    /// Takes what has come. Call [`next_event`](Self::next_event) until there is none before the next portion.
    pub fn receive(&mut self, now: Instant, bytes: &[u8]) {
        self.silence.received(now);
        self.reader.receive(bytes);
    }

    /// What has happened: what was received first, then deadlines that have passed.
    ///
    /// # Errors
    /// If the server has broken the protocol or returned a wrong result; the connection is to be closed.
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
                    // A server that reads nothing waits for no answer.
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

    /// When [`tick`](Self::tick) and [`next_event`](Self::next_event) are to be called though nothing has come.
    pub fn due(&self) -> Option<Instant> {
        let silence = self.silence.due(self.requests.len() > 0);
        silence.into_iter().chain(self.requests.next_deadline()).min()
    }

    /// Looks at the clock: pings a server that has been silent.
    ///
    /// # Errors
    /// If it has been silent for too long; the connection is to be closed.
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

    /// Whether there is something to send.
    pub fn has_unsent(&self) -> bool {
        !self.writer.is_empty()
    }

    /// Bytes that are to be sent.
    pub fn unsent(&mut self) -> &[u8] {
        self.writer.unsent()
    }

    /// So many of them have been sent.
    pub fn advance(&mut self, count: usize) {
        self.writer.advance(count);
    }

    /// How many requests the server has not answered.
    pub fn unanswered(&self) -> usize {
        self.requests.len()
    }

    /// Operations that another server may be asked for, now that this connection has ended: those that were not
    /// completed or withdrawn, in the order of submission.
    pub fn into_operations(self) -> Vec<O> {
        self.requests.into_operations()
    }
}
