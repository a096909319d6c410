//! One client's connection without I/O: bytes become requests, replies become bytes.

use crate::wire::{ErrorCode, Incoming, KeyName, Message, Mode, Reader, Violation, Writer, opcode};
use std::collections::HashSet;

/// One client's connection.
pub(super) struct Session {
    reader: Reader,
    writer: Writer,
    /// Requests that have not been answered.
    open: HashSet<u32>,
}

/// What a client has said that is not answered at once.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Compute this, and then [`reply`](Session::reply).
    Request(Request),
    /// Nobody waits for this any more; reply nevertheless.
    Withdraw(u32),
}

/// A private-key operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) id: u32,
    pub(super) key: KeyName,
    pub(super) opcode: u8,
    pub(super) payload: Box<[u8]>,
}

impl Session {
    pub(super) fn new(mode: Mode) -> Self {
        Self { reader: Reader::new(mode), writer: Writer::new(mode), open: HashSet::new() }
    }

    /// Takes what has come.
    pub(super) fn receive(&mut self, bytes: &[u8]) {
        self.reader.receive(bytes);
    }

    /// The next request that is there as a whole. Pings are answered, and requests that are not well formed are refused,
    /// without anybody hearing of them.
    ///
    /// # Errors
    /// What no correct client sends; the connection cannot go on.
    pub(super) fn next(&mut self) -> Result<Option<Asked>, Violation> {
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
                }
                Incoming::Message(Message::Ping { id, data }) => {
                    self.writer.put(&Message::Pong { id, data });
                }
                Incoming::Message(Message::Withdraw { id }) if self.open.contains(&id) => {
                    return Ok(Some(Asked::Withdraw(id)));
                }
                // It has been answered meanwhile; or an answer to nothing.
                Incoming::Message(Message::Withdraw { .. } | Message::Pong { .. }) => {}
                Incoming::Message(Message::Reply { result, .. }) => {
                    let opcode = if result.is_ok() { opcode::RESPONSE } else { opcode::ERROR };
                    return Err(Violation::WrongSide(opcode));
                }
                Incoming::Message(Message::Request(request)) => {
                    if !self.open.insert(request.id) {
                        return Err(Violation::DuplicateRequest(request.id));
                    }
                    return Ok(Some(Asked::Request(Request {
                        id: request.id,
                        key: request.key,
                        opcode: request.opcode,
                        payload: request.payload.into(),
                    })));
                }
            }
        }
    }

    /// Answers a request that is open; others are not answered a second time.
    pub(super) fn reply(&mut self, id: u32, result: Result<&[u8], ErrorCode>) {
        if self.open.remove(&id) {
            self.writer.set_padded(self.reader.padded());
            self.writer.put(&Message::Reply { id, result });
        }
    }

    /// From now on replies may be secret, and their memory is wiped.
    pub(super) fn wipe(&mut self) {
        self.writer.wipe();
    }

    /// How many requests are open.
    pub(super) fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether a message has begun and not ended.
    pub(super) fn is_in_between(&self) -> bool {
        self.reader.is_in_between()
    }

    /// Bytes to be sent.
    pub(super) fn writer(&mut self) -> &mut Writer {
        &mut self.writer
    }
}
