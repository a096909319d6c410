//! TCP connections that survive a pause of the process.

use std::{
    io::{self, Read, Write},
    net::TcpStream,
    ops::Deref,
};

/// A TCP connection that repeats interrupted system calls. Those of sockets with timeouts fail with EINTR after the process was
/// stopped and continued, as with its machine (signal(7)), and BoringSSL ends a connection for it.
#[derive(Debug)]
pub struct Uninterrupted(pub TcpStream);

impl Read for Uninterrupted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        repeated(|| self.0.read(buffer))
    }
}

impl Write for Uninterrupted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        repeated(|| self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Deref for Uninterrupted {
    type Target = TcpStream;

    fn deref(&self) -> &TcpStream {
        &self.0
    }
}

fn repeated(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}
