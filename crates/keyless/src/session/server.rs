//! Server side of a connection without I/O: converts bytes to requests, and replies to bytes.

use crate::wire::{ErrorCode, Incoming, KeyName, Message, Mode, Reader, Violation, Writer, opcode};
use std::collections::HashMap;

/// Server side of one client's connection.
pub(crate) struct ServerSession {
    mode: Mode,
    reader: Reader,
    writer: Writer,
    unanswered: Unanswered,
}

/// Open requests.
#[derive(Default)]
struct Unanswered {
    /// Client ids by internal id: some clients reuse an id while it is open.
    numbers: HashMap<u32, u32>,
    /// Internal id of the last request.
    last: u32,
}

/// Event on a connection.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ServerEvent {
    /// A ping or a malformed request; its reply is among the bytes to send.
    Answered,
    /// Request to compute and [`reply`](ServerSession::reply) to.
    Request(ReceivedRequest),
    /// The request was withdrawn; it still needs a reply.
    Withdraw(u32),
}

/// Private-key operation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    /// Internal id, unique among open requests.
    pub(crate) id: u32,
    pub(crate) key: KeyName,
    pub(crate) opcode: u8,
    pub(crate) payload: Box<[u8]>,
}

impl ServerSession {
    pub(crate) fn new(mode: Mode) -> Self {
        Self { mode, reader: Reader::new(mode), writer: Writer::new(mode), unanswered: Unanswered::default() }
    }

    /// Passes received bytes.
    pub(crate) fn receive(&mut self, bytes: &[u8]) {
        self.reader.receive(bytes);
    }

    /// Returns the next complete message. At most one reply is added to the bytes to send, so that the caller can
    /// limit these.
    ///
    /// # Errors
    /// Protocol violations; the connection cannot continue.
    pub(crate) fn next_event(&mut self) -> Result<Option<ServerEvent>, Violation> {
        loop {
            let incoming = match self.reader.next_message() {
                Ok(Some(incoming)) => incoming,
                Ok(None) => return Ok(None),
                Err(violation) => {
                    // A peer with another version can at least read this.
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
                // Foreign software sends messages reserved to servers, and expects a reply.
                Incoming::Message(Message::Reply { id, .. } | Message::Pong { id, .. })
                    if self.mode == Mode::Compatible =>
                {
                    self.writer.put(&Message::Reply { id, result: Err(ErrorCode::UnexpectedOpcode) });
                    return Ok(Some(ServerEvent::Answered));
                }
                // A request that is already completed, or an unexpected pong.
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

    /// Replies to an open request by its internal id; a second reply is ignored.
    pub(crate) fn reply(&mut self, id: u32, result: Result<&[u8], ErrorCode>) {
        if let Some(theirs) = self.unanswered.numbers.remove(&id) {
            self.writer.set_padded(self.reader.padded());
            self.writer.put(&Message::Reply { id: theirs, result });
        }
    }

    /// Marks later replies as secret; their memory is wiped.
    pub(crate) fn wipe(&mut self) {
        self.writer.wipe();
    }

    /// Number of open requests.
    pub(crate) fn unanswered(&self) -> usize {
        self.unanswered.numbers.len()
    }

    /// Returns whether a message has been received in part.
    pub(crate) fn has_partial_message(&self) -> bool {
        self.reader.has_partial_message()
    }

    /// Bytes to send.
    pub(crate) fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }
}

impl Unanswered {
    /// Internal id of a request: in the batched mode the client's id, which withdrawals name.
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
