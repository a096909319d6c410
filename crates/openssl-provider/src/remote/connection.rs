//! One connection to a key server: requests go out, replies come back by number. Without waiting.

use super::server::Reply;
use quadrille_engine::Operation;
use quadrille_keyless::wire::{
    Hints, Incoming, KeyName, Message, Mode, Reader, Request, Ski, Writer, opcode,
};
use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::Duration,
};
use zeroize::{Zeroize, Zeroizing};

pub(super) struct Connection {
    stream: UnixStream,
    reader: Reader,
    writer: Writer,
    number: u32,
    buffer: Box<[u8; 16 * 1024]>,
}

impl Connection {
    /// `patience` is how long reads and writes wait; without, they do not.
    pub(super) fn open(server: &Path, patience: Option<Duration>) -> io::Result<Self> {
        let stream = UnixStream::connect(server)?;
        match patience {
            Some(_) => {
                stream.set_read_timeout(patience)?;
                stream.set_write_timeout(patience)?;
            }
            None => stream.set_nonblocking(true)?,
        }
        let (mut reader, mut writer) = (Reader::new(Mode::Batched), Writer::new(Mode::Batched));
        reader.wipe();
        writer.wipe();
        Ok(Self { stream, reader, writer, number: 0, buffer: Box::new([0; 16 * 1024]) })
    }

    /// Puts a request behind those that are to be sent. `None` if it is too long.
    pub(super) fn put(&mut self, ski: Ski, operation: &Operation) -> Option<u32> {
        let id = self.number;
        self.number = self.number.wrapping_add(1);
        let (opcode, payload) = opcode::from_operation(operation);
        let request = Request { id, key: KeyName::from(ski), opcode, payload, hints: Hints::default() };
        self.writer.put(&Message::Request(request)).then_some(id)
    }

    /// Nobody waits for this request any more.
    pub(super) fn withdraw(&mut self, id: u32) {
        self.writer.put(&Message::Withdraw { id });
    }

    /// Sends what can be sent. True if all is.
    pub(super) fn send(&mut self) -> io::Result<bool> {
        while !self.writer.is_empty() {
            match self.stream.write(self.writer.unsent()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.writer.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    /// Takes what has come, once. False if nothing has, or nothing within the patience.
    pub(super) fn receive(&mut self, mut take: impl FnMut(u32, Reply)) -> io::Result<bool> {
        let count = match self.stream.read(&mut self.buffer[..]) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it")),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        self.reader.receive(&self.buffer[..count]);
        self.buffer[..count].zeroize();
        while let Some(incoming) = self.reader.next_message().map_err(io::Error::other)? {
            match incoming {
                Incoming::Message(Message::Reply { id, result }) => {
                    take(id, result.map(|bytes| Zeroizing::new(bytes.to_vec())));
                }
                Incoming::Malformed { id, error } => take(id, Err(error)),
                Incoming::Message(_) => {}
            }
        }
        Ok(true)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}
