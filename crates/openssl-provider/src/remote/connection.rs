//! A socket to a key server, with the session on it.

use quadrille_keyless::{
    session::{ClientSession, KeepAlive, RemoteOperation},
    wire::Mode,
};
use std::{
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, RawFd},
        unix::net::UnixStream,
    },
    path::Path,
    time::{Duration, Instant},
};
use zeroize::Zeroize;

pub(super) struct Connection<O> {
    pub(super) session: ClientSession<O>,
    stream: UnixStream,
    buffer: Box<[u8; 16 * 1024]>,
}

impl<O: RemoteOperation> Connection<O> {
    /// `timeout` is how long reads and writes wait; without, they do not.
    pub(super) fn open(server: &Path, timeout: Option<Duration>, keep_alive: KeepAlive) -> io::Result<Self> {
        let stream = UnixStream::connect(server)?;
        match timeout {
            Some(_) => {
                stream.set_read_timeout(timeout)?;
                stream.set_write_timeout(timeout)?;
            }
            None => stream.set_nonblocking(true)?,
        }
        let session = ClientSession::new(Instant::now(), Mode::Batched, false, keep_alive);
        Ok(Self { session, stream, buffer: Box::new([0; 16 * 1024]) })
    }

    /// Sends what can be sent.
    pub(super) fn send(&mut self) -> io::Result<()> {
        while self.session.has_unsent() {
            match self.stream.write(self.session.unsent()) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => self.session.advance(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Hands what has come to the session, which is to be asked for events after that. False if nothing has come, or
    /// nothing within the timeout.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let count = match self.stream.read(&mut self.buffer[..]) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed it")),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(error) => return Err(error),
        };
        self.session.receive(Instant::now(), &self.buffer[..count]);
        self.buffer[..count].zeroize();
        Ok(true)
    }

    pub(super) fn fd(&self) -> RawFd {
        self.stream.as_raw_fd()
    }
}
