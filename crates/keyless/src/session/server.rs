//! The server's end of a connection without I/O: bytes become requests, replies become bytes.

use crate::wire::{ErrorCode, Incoming, KeyName, Message, Mode, Reader, Violation, Writer, opcode};
use std::collections::HashMap;

/// The server's end of one client's connection.
pub(crate) struct ServerSession {
    mode: Mode,
    reader: Reader,
    writer: Writer,
    unanswered: Unanswered,
}

/// Requests that have not been answered.
#[derive(Default)]
struct Unanswered {
    /// The client's number for each of ours: clients in use give several requests the same.
    numbers: HashMap<u32, u32>,
    /// Our number of the last request.
    last: u32,
}

/// What a client has sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerEvent {
    /// A ping, or a request that is not well formed: its answer is among the bytes to be sent.
    Answered,
    /// Compute this, and then [`reply`](ServerSession::reply).
    Request(ReceivedRequest),
    /// Nobody waits for this any more; reply nevertheless.
    Withdraw(u32),
}

/// A private-key operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    /// Ours, of which there are no two at a time.
    pub(crate) id: u32,
    pub(crate) key: KeyName,
    pub(crate) opcode: u8,
    pub(crate) payload: Box<[u8]>,
}

impl ServerSession {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, reader: Reader::new(mode), writer: Writer::new(mode), unanswered: Unanswered::default() }
    }

    /// Takes what has come.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.reader.receive(bytes);
    }

    /// The next message that is there as a whole. At most one answer is added to the bytes to be sent, so that the
    /// caller can limit these.
    ///
    /// # Errors
    /// What no correct client sends; the connection cannot go on.
    pub(crate) fn next_event(&mut self) -> Result<Option<ServerEvent>, Violation> {
        loop {
            let incoming = match self.reader.next_message() {
                Ok(Some(incoming)) => incoming,
                Ok(None) => return Ok(None),
                Err(violation) => {
                    // Whoever speaks another version can read this at least.
                    self.writer.put(&Message::Reply { id: 0, result: Err(ErrorCode::Version) });
                    return Err(violation);
                }
            };
            match incoming {
                Incoming::Malformed { id, error } => {
                    self.writer.put(&Message::Reply { id, result: Err(error) });
                    return Ok(Some(ServerEvent::Answered));
                }
                Incoming::Message(Message::Ping { id, data }) => {
                    self.writer.put(&Message::Pong { id, data });
                    return Ok(Some(ServerEvent::Answered));
                }
                Incoming::Message(Message::Withdraw { id }) if self.unanswered.numbers.contains_key(&id) => {
                    return Ok(Some(ServerEvent::Withdraw(id)));
                }
                // Software that is not ours sends what only servers may, and expects an answer.
                Incoming::Message(Message::Reply { id, .. } | Message::Pong { id, .. })
                    if self.mode == Mode::Compatible =>
                {
                    self.writer.put(&Message::Reply { id, result: Err(ErrorCode::UnexpectedOpcode) });
                    return Ok(Some(ServerEvent::Answered));
                }
                // It has been answered meanwhile; or an answer to nothing.
                Incoming::Message(Message::Withdraw { .. } | Message::Pong { .. }) => {}
                Incoming::Message(Message::Reply { result, .. }) => {
                    let opcode = if result.is_ok() { opcode::RESPONSE } else { opcode::ERROR };
                    return Err(Violation::WrongSide(opcode));
                }
                Incoming::Message(Message::Request(request)) => {
                    let id = self.unanswered.add(self.mode, request.id)?;
                    return Ok(Some(ServerEvent::Request(ReceivedRequest {
                        id,
                        key: request.key,
                        opcode: request.opcode,
                        payload: request.payload.into(),
                    })));
                }
            }
        }
    }

    /// Answers a request, by our number, that is open; others are not answered a second time.
    pub(crate) fn reply(&mut self, id: u32, result: Result<&[u8], ErrorCode>) {
        if let Some(theirs) = self.unanswered.numbers.remove(&id) {
            self.writer.set_padded(self.reader.padded());
            self.writer.put(&Message::Reply { id: theirs, result });
        }
    }

    /// From now on replies may be secret, and their memory is wiped.
    pub(crate) fn wipe(&mut self) {
        self.writer.wipe();
    }

    /// How many requests have not been answered.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.numbers.len()
    }

    /// Whether a message has begun and not ended.
    pub(crate) fn has_partial_message(&self) -> bool {
        self.reader.has_partial_message()
    }

    /// Bytes to be sent.
    pub(crate) fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Unanswered {
    /// Our number for a request: the client's in our own mode, in which a withdrawal names it.
    fn add(&mut self, mode: Mode, theirs: u32) -> Result<u32, Violation> {
        let own = match mode {
            Mode::Batched if self.numbers.contains_key(&theirs) => {
                return Err(Violation::DuplicateRequest(theirs));
            }
            Mode::Batched => theirs,
            Mode::Compatible => self.free(),
        };
        self.numbers.insert(own, theirs);
        Ok(own)
    }

    fn free(&mut self) -> u32 {
        loop {
            self.last = self.last.wrapping_add(1);
            if !self.numbers.contains_key(&self.last) {
                return self.last;
            }
        }
    }
}
