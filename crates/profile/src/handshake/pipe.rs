//! An in-memory connection between two endpoints.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, ErrorKind, Read, Write},
    rc::Rc,
};

type Bytes = Rc<RefCell<VecDeque<u8>>>;

/// One end of the connection; never blocks.
#[derive(Debug)]
pub(super) struct Pipe {
    incoming: Bytes,
    outgoing: Bytes,
}

/// Creates two connected ends: bytes written to one are read from the other.
pub(super) fn pair() -> (Pipe, Pipe) {
    let (there, back) = (Bytes::default(), Bytes::default());
    (
        Pipe { incoming: Rc::clone(&back), outgoing: Rc::clone(&there) },
        Pipe { incoming: there, outgoing: back },
    )
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.incoming.borrow_mut().read(buffer)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        self.outgoing.borrow_mut().write(buffer)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
