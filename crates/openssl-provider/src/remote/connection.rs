//! A socket connected to a key server, with its protocol session.

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
    /// Opens a connection. `timeout` limits reads and writes; without it, they do not block.
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

    /// Sends as much as the socket accepts.
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

    /// Passes received bytes to the session, whose events the caller then takes. Returns false if nothing was
    /// received, also within the timeout.
    pub(super) fn receive(&mut self) -> io::Result<bool> {
        let count = match self.stream.read(&mut self.buffer[..]) {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "closed by the server")),
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
