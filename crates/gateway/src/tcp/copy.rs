//! Bidirectional copy between two streams, with memory only for data in transit.

use crate::{connection::PooledBuffer, tls::Transport, upstream::ServerStream};
use std::{
    future::{Future, poll_fn},
    io::{self, ErrorKind},
    pin::{Pin, pin},
    task::{Context, Poll, ready},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::{Instant, sleep},
};
use tokio_boring::SslStream;

/// Bytes of a read, which are then written and flushed: four full TLS records, which one transport buffer holds.
const READ_SIZE: usize = 4 * 16 * 1024;

/// Reads of one direction before other connections of the event loop run.
const READS: usize = 4;

/// A stream between which data is copied.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {
    /// Returns the number of bytes that have left the stream's own buffer: while it grows, the peer reads. Returns 0
    /// if there is no such buffer.
    fn sent(&self) -> u64 {
        0
    }
}

impl Stream for ServerStream {
    fn sent(&self) -> u64 {
        self.sent()
    }
}

impl Stream for Transport {
    fn sent(&self) -> u64 {
        self.sent()
    }
}

impl Stream for SslStream<Transport> {
    fn sent(&self) -> u64 {
        self.get_ref().sent()
    }
}

/// Number of bytes read from each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) from_client: u64,
    pub(crate) from_server: u64,
    pub(crate) end: CopyEnd,
}

/// Reason for the end of copying.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopyEnd {
    /// Both sides have closed.
    Closed,
    /// A side has failed.
    Failed,
    /// No data was transferred for the idle time.
    Idle,
}

/// Copies until both sides have closed, one of them fails, no data is transferred for the idle time, or one side does
/// not read pending data for as long. A side that half-closes still receives the other side's data. `moved` is called
/// with the time when data was transferred.
pub(crate) async fn copy_both_ways(
    client: &mut impl Stream,
    server: &mut dyn Stream,
    idle: Duration,
    moved: impl Fn(Instant),
) -> Copied {
    let now = Instant::now();
    let mut last = now;
    let (mut to_server, mut to_client) = (Direction::new(now), Direction::new(now));
    let mut alarm = pin!(sleep(idle));
    let end = poll_fn(|context| {
        let there = to_server.poll(context, client, server);
        let back = to_client.poll(context, server, client);
        let latest = to_server.moved.max(to_client.moved);
        if latest != last {
            last = latest;
            moved(latest);
        }
        // A side that has closed may be gone before it receives the other's shutdown.
        let ends = [(&there, &to_client), (&back, &to_server)];
        if let Some((_, other)) = ends.iter().find(|(polled, _)| matches!(polled, Poll::Ready(Err(_)))) {
            let is_over = other.stage == Stage::Closed;
            return Poll::Ready(if is_over { CopyEnd::Closed } else { CopyEnd::Failed });
        }
        if there.is_ready() && back.is_ready() {
            return Poll::Ready(CopyEnd::Closed);
        }
        // The timer runs to the earliest possible end at the time it was set; later transfers delay the end.
        while alarm.as_mut().poll(context).is_ready() {
            let due = last_movement(&to_server, &to_client) + idle;
            if due <= Instant::now() {
                return Poll::Ready(CopyEnd::Idle);
            }
            alarm.as_mut().reset(due);
        }
        Poll::Pending
    })
    .await;
    Copied { from_client: to_server.received, from_server: to_client.received, end }
}

/// Returns the start of the idle time.
fn last_movement(one: &Direction, other: &Direction) -> Instant {
    let blocked = [one, other].into_iter().filter(|direction| direction.stage == Stage::Writing);
    blocked.map(|direction| direction.moved).fold(one.moved.max(other.moved), Instant::min)
}

/// Transfer from one stream to the other.
struct Direction {
    buffer: PooledBuffer,
    stage: Stage,
    /// Result of reading, once it has ended.
    end: Option<io::Result<()>>,
    received: u64,
    written: u64,
    /// Progress at the last check, and the time of the last change.
    movement: u64,
    moved: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Reading,
    /// Data has to be written, flushed or shut down.
    Writing,
    /// Both halves are closed.
    Closed,
}

impl Direction {
    fn new(now: Instant) -> Self {
        Self {
            buffer: PooledBuffer::default(),
            stage: Stage::Reading,
            end: None,
            received: 0,
            written: 0,
            movement: 0,
            moved: now,
        }
    }

    /// Becomes ready when all data is written and the half is closed.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl Stream + ?Sized),
        to: &mut (impl Stream + ?Sized),
    ) -> Poll<io::Result<()>> {
        let polled = self.poll_reads(context, from, to);
        let movement = self.received + self.written + to.sent();
        if movement != self.movement {
            self.movement = movement;
            self.moved = Instant::now();
        }
        polled
    }

    fn poll_reads(
        &mut self,
        context: &mut Context<'_>,
        from: &mut (impl Stream + ?Sized),
        to: &mut (impl Stream + ?Sized),
    ) -> Poll<io::Result<()>> {
        for _ in 0..READS {
            if self.stage == Stage::Reading {
                ready!(self.poll_read(context, from));
                self.stage = Stage::Writing;
            }
            if self.stage == Stage::Writing {
                self.stage = ready!(self.poll_write(context, to))?;
            }
            if self.stage == Stage::Closed {
                return Poll::Ready(Ok(()));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }

    /// Reads available data, once; pending without data.
    fn poll_read(&mut self, context: &mut Context<'_>, from: &mut (impl Stream + ?Sized)) -> Poll<()> {
        while self.buffer.bytes().len() < READ_SIZE {
            let missing = READ_SIZE - self.buffer.bytes().len();
            let polled = self.buffer.fill(missing, |room| {
                ready!(Pin::new(&mut *from).poll_read(context, room))?;
                Poll::Ready(io::Result::Ok(room.filled().len()))
            });
            match polled {
                Poll::Ready(Ok(count @ 1..)) => self.received += count as u64,
                Poll::Ready(end) => {
                    self.end = Some(end.map(drop));
                    break;
                }
                Poll::Pending if self.buffer.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        Poll::Ready(())
    }

    /// Writes the data read and flushes it, then determines the next stage.
    fn poll_write(
        &mut self,
        context: &mut Context<'_>,
        to: &mut (impl Stream + ?Sized),
    ) -> Poll<io::Result<Stage>> {
        while !self.buffer.is_empty() {
            match ready!(Pin::new(&mut *to).poll_write(context, self.buffer.bytes()))? {
                0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                count => {
                    self.buffer.consume(count);
                    self.written += count as u64;
                }
            }
        }
        ready!(Pin::new(&mut *to).poll_flush(context))?;
        let Some(end) = &mut self.end else { return Poll::Ready(Ok(Stage::Reading)) };
        std::mem::replace(end, Ok(()))?;
        ready!(Pin::new(&mut *to).poll_shutdown(context))?;
        Poll::Ready(Ok(Stage::Closed))
    }
}

#[cfg(test)]
mod tests {
    use super::{
        AsyncRead, AsyncWrite, Context, Copied, CopyEnd, Direction, Duration, Instant, Pin, Poll, READ_SIZE,
        READS, Stage, Stream, copy_both_ways, io, last_movement,
    };
    use std::task::Waker;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadBuf, duplex, split};

    const LONG: Duration = Duration::from_secs(60);

    impl Stream for DuplexStream {}

    /// Copies between the inner ends of two small pipes; returns the outer ends.
    fn copying(idle: Duration) -> (DuplexStream, DuplexStream, impl Future<Output = Copied>) {
        let (client, mut inner_client) = duplex(1000);
        let (server, mut inner_server) = duplex(1000);
        let copied = async move { copy_both_ways(&mut inner_client, &mut inner_server, idle, |_| ()).await };
        (client, server, copied)
    }

    #[tokio::test]
    async fn each_half_closes_by_itself() {
        let (mut client, mut server, copied) = copying(LONG);
        let talk = async {
            client.write_all(b"request").await.expect("writing");
            client.shutdown().await.expect("closing one half");
            let mut question = String::new();
            server.read_to_string(&mut question).await.expect("the request and its end");
            server.write_all(b"response").await.expect("writing");
            server.shutdown().await.expect("closing the other half");
            let mut answer = String::new();
            client.read_to_string(&mut answer).await.expect("the response and its end");
            (question, answer)
        };
        let (copied, (question, answer)) = tokio::join!(copied, talk);
        assert_eq!((question.as_str(), answer.as_str()), ("request", "response"));
        assert_eq!(copied, Copied { from_client: 7, from_server: 8, end: CopyEnd::Closed });
    }

    #[tokio::test]
    async fn much_passes_in_both_directions_at_once() {
        const MUCH: usize = 3 * READ_SIZE + 17;
        let (client, server, copied) = copying(LONG);
        let exchange = |end: DuplexStream, byte: u8| async move {
            let (mut read, mut write) = split(end);
            let send = async {
                write.write_all(&vec![byte; MUCH]).await.expect("writing");
                write.shutdown().await.expect("closing one half");
            };
            let mut got = Vec::new();
            let (read, ()) = tokio::join!(read.read_to_end(&mut got), send);
            read.expect("reading");
            got
        };
        let (copied, at_client, at_server) = tokio::join!(copied, exchange(client, 1), exchange(server, 2));
        assert!(at_client == vec![2; MUCH] && at_server == vec![1; MUCH]);
        assert_eq!(
            copied,
            Copied { from_client: MUCH as u64, from_server: MUCH as u64, end: CopyEnd::Closed }
        );
    }

    #[tokio::test]
    async fn silence_ends_the_connection() {
        let (_client, _server, copied) = copying(Duration::from_millis(20));
        let copied = tokio::time::timeout(LONG, copied).await.expect("an end");
        assert_eq!(copied, Copied { from_client: 0, from_server: 0, end: CopyEnd::Idle });
    }

    #[tokio::test]
    async fn a_side_that_does_not_read_ends_the_connection_even_if_it_writes() {
        let (client, server, copied) = copying(Duration::from_millis(50));
        let (_unread, mut says) = split(client);
        let (mut hears, mut floods) = split(server);
        let others = async {
            let talk = async {
                while says.write_all(b"still here").await.is_ok() {
                    let _ = hears.read_exact(&mut [0; 10]).await;
                    tokio::task::yield_now().await;
                }
            };
            let flood = async { while floods.write_all(&[0; 100]).await.is_ok() {} };
            tokio::join!(talk, flood)
        };
        let both = async { tokio::join!(copied, others) };
        let (copied, _) = tokio::time::timeout(LONG, both).await.expect("an end");
        assert!(copied.from_client > 0 && copied.from_server >= 1000);
    }

    #[test]
    fn a_blocked_direction_counts_by_itself() {
        let began = Instant::now();
        let after = |seconds| began + Duration::from_secs(seconds);
        let (mut one, mut other) = (Direction::new(after(1)), Direction::new(after(5)));
        assert_eq!(last_movement(&one, &other), after(5));
        one.stage = Stage::Writing;
        assert_eq!(last_movement(&one, &other), after(1));
        (one.stage, other.stage) = (Stage::Closed, Stage::Writing);
        assert_eq!(last_movement(&one, &other), after(5));
    }

    /// A stream that always has data, and accepts all writes.
    struct Endless;

    impl AsyncRead for Endless {
        fn poll_read(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            out: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            let count = out.initialize_unfilled().len();
            out.advance(count);
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Endless {
        fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(bytes.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl Stream for Endless {}

    #[test]
    fn an_endless_stream_yields_to_other_connections() {
        let mut direction = Direction::new(Instant::now());
        let mut context = Context::from_waker(Waker::noop());
        for polls in 1..3 {
            assert!(direction.poll(&mut context, &mut Endless, &mut Endless).is_pending());
            assert_eq!(direction.written, (polls * READS * READ_SIZE) as u64);
        }
    }
}
