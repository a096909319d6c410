//! TCP transport of a TLS connection: reads ahead, and sends the records of one turn together.
//!
//! BoringSSL reads five bytes of record header, then the record, and writes each record separately: two system calls
//! per received record, one per sent record. Here one call reads all available data, and the excess is buffered;
//! writes are collected until they are flushed or the buffer is full.
//!
//! BoringSSL flushes after each flight of a handshake and after a fatal alert. Tickets and responses to a KeyUpdate
//! are sent with the following flight or application data; close_notify is followed by a shutdown, which sends it
//! together with the data before it.

use crate::{admission::Transfers, connection::PooledBuffer};
use socket2::SockRef;
use std::{
    future::poll_fn,
    io::{self, ErrorKind},
    net::{IpAddr, Shutdown},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

/// Size from which on bytes are read into the caller's memory, or sent from it, without another copy. It is larger
/// than a record, so that records are collected.
const DIRECT: usize = 32 * 1024;

/// Number of bytes that the kernel takes before it sends them (`TCP_NOTSENT_LOWAT`), on each of many connections that
/// transfer at the same time. By default, it takes up to 4 MiB for a client that does not read, and a few hundred of
/// these exhaust the memory of TCP for all connections of the machine. For a few connections, the limit costs more CPU
/// time than it saves.
const NOT_SENT: u32 = 512 * 1024;

/// Time limit for sending the last bytes of a connection after a shutdown.
const LAST_BYTES: Duration = Duration::from_secs(30);

/// TCP stream with read-ahead, whose writes are sent on flush.
#[derive(Debug)]
pub(crate) struct Transport {
    /// Shared with the task that watches for a disconnect.
    tcp: Arc<TcpStream>,
    ahead: PooledBuffer,
    unsent: PooledBuffer,
    /// Number of bytes that the kernel has accepted.
    sent: u64,
    /// Share in the transfers of the event loop; `None` for connections to servers, whose data goes to clients.
    transfers: Option<Transfers>,
    /// Whether the socket is closed after the shutdown.
    closes: bool,
}

impl Transport {
    pub(crate) fn new(tcp: TcpStream) -> Self {
        Self {
            tcp: Arc::new(tcp),
            ahead: PooledBuffer::default(),
            unsent: PooledBuffer::default(),
            sent: 0,
            transfers: None,
            closes: false,
        }
    }

    /// Creates the transport of an accepted connection, which takes turns with the others of its event loop.
    pub(crate) fn accepted(tcp: TcpStream, transfers: Transfers) -> Self {
        Self { transfers: Some(transfers), ..Self::new(tcp) }
    }

    /// Records that a proxy has announced another client.
    pub(crate) fn belongs_to(&mut self, client: IpAddr) {
        if let Some(transfers) = &mut self.transfers {
            transfers.belongs_to(client);
        }
    }

    pub(crate) fn tcp(&self) -> &Arc<TcpStream> {
        &self.tcp
    }

    /// Announces that the socket is closed after the shutdown: the close sends the FIN, and the system call for it is
    /// saved.
    pub(crate) fn closes_after_shutdown(&mut self) {
        self.closes = true;
    }

    /// Returns the bytes read ahead.
    pub(crate) fn waiting(&self) -> &[u8] {
        self.ahead.bytes()
    }

    /// Returns the number of bytes that the kernel has accepted so far: while it grows, the client reads.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Reads more data, so that [`waiting`](Self::waiting) grows. Returns an error at the end of the stream, and if
    /// the buffer is full.
    pub(crate) async fn need_more(&mut self) -> io::Result<()> {
        if self.ahead.room() == 0 {
            return Err(io::Error::new(ErrorKind::InvalidData, "read-ahead buffer full"));
        }
        match poll_fn(|context| self.poll_read_ahead(context)).await? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    /// Returns whether the kernel is expected to accept everything that is unsent at once.
    pub(crate) fn sends_at_once(&self, context: &mut Context<'_>) -> bool {
        self.unsent.bytes().len() < DIRECT && self.tcp.poll_write_ready(context).is_ready()
    }

    /// Drops bytes that were processed.
    pub(crate) fn consume(&mut self, count: usize) {
        self.ahead.consume(count);
    }

    /// Ready if the connection may transfer now.
    fn poll_turn(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let Some(transfers) = &mut self.transfers else { return Poll::Ready(()) };
        let polled = transfers.poll_allowed(context);
        if polled.is_pending() && transfers.becomes_one_of_many() {
            // If it fails, the kernel holds more.
            let _ = SockRef::from(&*self.tcp).set_tcp_notsent_lowat(NOT_SENT);
        }
        polled
    }

    fn count(&mut self, bytes: usize) {
        if let Some(transfers) = &mut self.transfers {
            transfers.count(bytes);
        }
    }

    fn poll_read_ahead(&mut self, context: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let Self { tcp, ahead, .. } = self;
        ahead.fill(usize::MAX, |room| {
            ready!(poll_receive(tcp, context, room))?;
            Poll::Ready(Ok(room.filled().len()))
        })
    }

    /// Sends what was written: a reader that waits for a response has written everything, flushed or not. An error is
    /// returned by the next write.
    fn poll_before_waiting(&mut self) -> Poll<io::Result<()>> {
        if !self.unsent.is_empty() {
            let _ = self.send_unsent();
        }
        Poll::Pending
    }

    fn poll_send(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.tcp.poll_write_ready(context))?;
            if let Poll::Ready(outcome) = self.send(bytes) {
                return Poll::Ready(outcome);
            }
        }
    }

    fn poll_send_all(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.unsent.is_empty() {
            ready!(self.tcp.poll_write_ready(context))?;
            if let Poll::Ready(outcome) = self.send_unsent() {
                outcome?;
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Sends the collected bytes with one system call.
    fn send_unsent(&mut self) -> Poll<io::Result<()>> {
        let unsent = std::mem::take(&mut self.unsent);
        let outcome = self.send(unsent.bytes());
        self.unsent = unsent;
        let count = ready!(outcome)?;
        self.unsent.consume(count);
        Poll::Ready(if count == 0 { Err(ErrorKind::WriteZero.into()) } else { Ok(()) })
    }

    /// Sends with one system call, or with none if tokio knows that the kernel accepts nothing; a pending result does
    /// not register a waker. If the kernel accepted less than offered, tokio's readiness is cleared, so that the next
    /// call waits instead of trying.
    fn send(&mut self, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.tcp.try_write(bytes) {
            Ok(count) => {
                if (1..bytes.len()).contains(&count) {
                    forget_ready(&self.tcp, Interest::WRITABLE);
                }
                self.sent += count as u64;
                Poll::Ready(Ok(count))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Poll::Pending,
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

/// Receives with one system call. A buffer that is not filled means that the kernel has no more data: tokio's
/// readiness is cleared, so that the next call waits instead of trying.
fn poll_receive(tcp: &TcpStream, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
    loop {
        ready!(tcp.poll_read_ready(context))?;
        let room = out.initialize_unfilled();
        let asked = room.len();
        match tcp.try_read(room) {
            Ok(count) => {
                if (1..asked).contains(&count) {
                    forget_ready(tcp, Interest::READABLE);
                }
                out.advance(count);
                return Poll::Ready(Ok(()));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
    }
}

/// Clears tokio's readiness of the socket, without a system call.
fn forget_ready(tcp: &TcpStream, interest: Interest) {
    let _ = tcp.try_io(interest, || Err::<(), _>(ErrorKind::WouldBlock.into()));
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.poll_turn(context).is_pending() {
            return self.poll_before_waiting();
        }
        let before = out.filled().len();
        if self.waiting().is_empty() {
            let polled = match out.remaining() {
                DIRECT.. => poll_receive(&self.tcp, context, out),
                _ => self.poll_read_ahead(context).map_ok(drop),
            };
            if polled.is_pending() {
                return self.poll_before_waiting();
            }
            ready!(polled)?;
        }
        let count = self.waiting().len().min(out.remaining());
        out.put_slice(&self.waiting()[..count]);
        self.consume(count);
        self.count(out.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.unsent.room() < bytes.len() {
            ready!(self.poll_send_all(context))?;
        }
        // What is collected is sent before, so that a turn does not end with a small write.
        if self.unsent.is_empty() {
            ready!(self.poll_turn(context));
        }
        let count = match self.unsent.is_empty() && bytes.len() >= DIRECT {
            true => ready!(self.poll_send(context, bytes))?,
            false => self.unsent.put(bytes),
        };
        self.count(count);
        Poll::Ready(Ok(count))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send_all(context)
    }

    /// Shuts down; always ready. On a second call, BoringSSL would wait for the client's close_notify, and treat
    /// application data as an error. Bytes that the kernel does not accept at once are sent by a separate task.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.poll_send_all(context) {
            Poll::Ready(Ok(())) if self.closes => Poll::Ready(Ok(())),
            Poll::Ready(Ok(())) => Poll::Ready(SockRef::from(&*self.tcp).shutdown(Shutdown::Write)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                let rest = std::mem::take(&mut self.unsent);
                drop(tokio::spawn(send_last_bytes(Arc::clone(&self.tcp), rest)));
                Poll::Ready(Ok(()))
            }
        }
    }
}

async fn send_last_bytes(tcp: Arc<TcpStream>, rest: PooledBuffer) {
    let ahead = PooledBuffer::default();
    let mut transport = Transport { tcp, ahead, unsent: rest, sent: 0, transfers: None, closes: false };
    let all = poll_fn(|context| transport.poll_send_all(context));
    if let Ok(Ok(())) = tokio::time::timeout(LAST_BYTES, all).await {
        let _ = SockRef::from(&*transport.tcp).shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Arc, AsyncRead, AsyncWrite, Context, ErrorKind, Pin, Poll, ReadBuf, SockRef, TcpStream, Transport,
    };
    use std::{task::Waker, time::Duration};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    /// Returns a transport and its peer with small buffers between them.
    async fn pair() -> (Transport, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let peer =
            TcpStream::connect(listener.local_addr().expect("an address")).await.expect("a connection");
        let (tcp, _) = listener.accept().await.expect("a connection");
        SockRef::from(&tcp).set_send_buffer_size(8 * 1024).expect("a small buffer");
        tcp.set_nodelay(true).expect("no delay");
        tcp.writable().await.expect("a connection");
        (Transport::new(tcp), peer)
    }

    fn write(transport: &mut Transport, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(transport).poll_write(&mut Context::from_waker(Waker::noop()), bytes)
    }

    fn flush(transport: &mut Transport) -> Poll<std::io::Result<()>> {
        Pin::new(transport).poll_flush(&mut Context::from_waker(Waker::noop()))
    }

    /// Writes records until no more are accepted; returns the bytes accepted.
    fn write_until_full(transport: &mut Transport) -> Vec<u8> {
        let mut written = Vec::new();
        for index in 0_u8..100 {
            let record = vec![index; 16 * 1024];
            match write(transport, &record) {
                Poll::Ready(count) => written.extend_from_slice(&record[..count.expect("writing")]),
                Poll::Pending => return written,
            }
        }
        panic!("writes are accepted without end");
    }

    async fn read_to_end(mut peer: TcpStream) -> Vec<u8> {
        let mut all = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(60), peer.read_to_end(&mut all));
        read.await.expect("an end in time").expect("reading");
        all
    }

    #[tokio::test]
    async fn what_is_written_leaves_when_it_is_flushed() {
        let (mut transport, mut peer) = pair().await;
        for part in [&b"one "[..], b"two ", b"three"] {
            assert!(matches!(write(&mut transport, part), Poll::Ready(Ok(count)) if count == part.len()));
        }
        assert_eq!(transport.sent(), 0);
        transport.flush().await.expect("flushing");
        assert_eq!(transport.sent(), 13);
        let mut seen = [0; 13];
        peer.read_exact(&mut seen).await.expect("reading");
        assert_eq!(&seen, b"one two three");
    }

    #[tokio::test]
    async fn waiting_for_an_answer_sends_what_was_said() {
        let (mut transport, mut peer) = pair().await;
        transport.write_all(b"question").await.expect("writing");
        let mut answer = [0; 6];
        let answered = async {
            let mut question = [0; 8];
            peer.read_exact(&mut question).await.expect("reading");
            peer.write_all(b"answer").await.expect("writing");
        };
        let (read, ()) = tokio::join!(transport.read_exact(&mut answer), answered);
        read.expect("a response");
        assert_eq!(&answer, b"answer");
    }

    #[tokio::test]
    async fn a_large_write_is_not_copied() {
        let (mut transport, _peer) = pair().await;
        let Poll::Ready(Ok(count)) = write(&mut transport, &[7; 1 << 20]) else { panic!("not accepted") };
        assert!(transport.unsent.is_empty());
        assert_eq!(transport.sent(), count as u64);
    }

    #[tokio::test]
    async fn a_peer_that_does_not_read_stops_the_writer_and_loses_nothing() {
        let (mut transport, mut peer) = pair().await;
        let written = write_until_full(&mut transport);
        assert!(flush(&mut transport).is_pending());
        let mut seen = vec![0; written.len()];
        let (flushed, read) = tokio::join!(transport.flush(), peer.read_exact(&mut seen));
        flushed.expect("flushing");
        read.expect("reading");
        assert!(seen == written);
        assert_eq!(transport.sent(), written.len() as u64);
    }

    #[tokio::test]
    async fn shutdown_does_not_wait_and_sends_everything() {
        let (mut transport, peer) = pair().await;
        transport.write_all(b"last words").await.expect("writing");
        transport.shutdown().await.expect("shutting down");
        assert_eq!(read_to_end(peer).await, b"last words");

        let (mut transport, peer) = pair().await;
        let written = write_until_full(&mut transport);
        let shut = Pin::new(&mut transport).poll_shutdown(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(shut, Poll::Ready(Ok(()))));
        drop(transport);
        assert!(read_to_end(peer).await == written);
    }

    #[tokio::test]
    async fn a_peer_that_is_gone_is_an_error() {
        let (mut transport, peer) = pair().await;
        SockRef::from(&peer).set_linger(Some(Duration::ZERO)).expect("a reset");
        drop(peer);
        let failed = tokio::time::timeout(Duration::from_secs(60), async {
            loop {
                let written = transport.write_all(&[1; 1024]).await;
                if let Err(error) = written.and(transport.flush().await) {
                    return error.kind();
                }
            }
        });
        let kind = failed.await.expect("an error in time");
        assert!(matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{kind}");
    }

    #[tokio::test]
    async fn what_was_not_asked_for_waits() {
        let (mut transport, mut peer) = pair().await;
        peer.write_all(b"headerrecord").await.expect("writing");
        transport.need_more().await.expect("bytes");
        while transport.waiting().len() < 12 {
            transport.need_more().await.expect("bytes");
        }
        let mut header = [0; 6];
        transport.read_exact(&mut header).await.expect("reading");
        assert_eq!((&header, transport.waiting()), (b"header", &b"record"[..]));
        transport.consume(6);
        drop(peer);
        let end = transport.need_more().await.expect_err("the end");
        assert_eq!(end.kind(), ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn no_more_is_read_ahead_than_the_buffer_holds() {
        let (mut transport, mut peer) = pair().await;
        let flood = async { while peer.write_all(&[3; 4096]).await.is_ok() {} };
        let read = async { while transport.need_more().await.is_ok() {} };
        tokio::select! { () = flood => panic!("the transport is gone"), () = read => {} }
        assert_eq!(transport.waiting().len(), crate::connection::CAPACITY);
        let mut memory = [0; 100];
        let mut out = ReadBuf::new(&mut memory);
        let polled = Pin::new(&mut transport).poll_read(&mut Context::from_waker(Waker::noop()), &mut out);
        assert!(polled.is_ready() && out.filled() == [3; 100]);
        assert_eq!(Arc::strong_count(transport.tcp()), 1);
    }
}
