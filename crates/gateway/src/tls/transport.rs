//! The TCP side of a TLS connection, reading ahead.
//!
//! BoringSSL asks for five bytes of record header, then for the record: two system calls for each of the four or
//! five records of a handshake. Here one call takes what the kernel has, and what was not asked for waits. The
//! waiting bytes are held only while there are any, so that an idle connection costs nothing.

use socket2::SockRef;
use std::{
    cell::RefCell,
    io::{self, ErrorKind},
    net::Shutdown,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

/// Two of the largest TLS records (RFC 8446 section 5.2).
const CHUNK: usize = 2 * (16 * 1024 + 256 + 5);

thread_local! {
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; CHUNK].into());
}

/// A TCP stream that reads ahead.
#[derive(Debug)]
pub(crate) struct Transport {
    /// Shared with whoever watches for the client to leave.
    tcp: Arc<TcpStream>,
    ahead: Vec<u8>,
    taken: usize,
}

impl Transport {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Self { tcp: Arc::new(tcp), ahead: Vec::new(), taken: 0 }
    }

    pub(crate) fn tcp(&self) -> &Arc<TcpStream> {
        &self.tcp
    }

    /// What has been read and not yet been asked for.
    pub(crate) fn waiting(&self) -> &[u8] {
        &self.ahead[self.taken..]
    }

    /// Reads more, so that [`waiting`](Self::waiting) grows; false at the end of the stream.
    async fn read_more(&mut self) -> io::Result<bool> {
        std::future::poll_fn(|context| {
            SCRATCH.with_borrow_mut(|scratch| {
                let mut buffer = ReadBuf::new(scratch);
                ready!(self.poll_receive(context, &mut buffer))?;
                self.ahead.extend_from_slice(buffer.filled());
                Poll::Ready(Ok(!buffer.filled().is_empty()))
            })
        })
        .await
    }

    /// The same, where the end of the stream is an error.
    pub(crate) async fn need_more(&mut self) -> io::Result<()> {
        if self.read_more().await? { Ok(()) } else { Err(ErrorKind::UnexpectedEof.into()) }
    }

    /// Drops bytes that were dealt with.
    pub(crate) fn consume(&mut self, count: usize) {
        self.taken = (self.taken + count).min(self.ahead.len());
        if self.taken == self.ahead.len() {
            self.ahead = Vec::new();
            self.taken = 0;
        }
    }

    /// One system call. A buffer that was not filled means that the kernel has no more: tokio is told, so that the
    /// next call waits instead of asking.
    fn poll_receive(&self, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.tcp.poll_read_ready(context))?;
            let room = out.initialize_unfilled();
            let asked = room.len();
            match self.tcp.try_read(room) {
                Ok(count) => {
                    if (1..asked).contains(&count) {
                        self.wait_for(Interest::READABLE);
                    }
                    out.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_send(&self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp.poll_write_ready(context))?;
            match self.tcp.try_write(bytes) {
                Ok(count) => {
                    if (1..bytes.len()).contains(&count) {
                        self.wait_for(Interest::WRITABLE);
                    }
                    return Poll::Ready(Ok(count));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Makes tokio forget that the socket was ready; there is no system call in this.
    fn wait_for(&self, interest: Interest) {
        let _ = self.tcp.try_io(interest, || Err::<(), _>(ErrorKind::WouldBlock.into()));
    }
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.waiting().is_empty() {
            if out.remaining() >= CHUNK {
                return self.poll_receive(context, out);
            }
            return SCRATCH.with_borrow_mut(|scratch| {
                let mut buffer = ReadBuf::new(scratch);
                ready!(self.poll_receive(context, &mut buffer))?;
                let (asked, ahead) = buffer.filled().split_at(buffer.filled().len().min(out.remaining()));
                out.put_slice(asked);
                self.ahead.extend_from_slice(ahead);
                Poll::Ready(Ok(()))
            });
        }
        let count = self.waiting().len().min(out.remaining());
        out.put_slice(&self.waiting()[..count]);
        self.consume(count);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(&*self.tcp).shutdown(Shutdown::Write))
    }
}
