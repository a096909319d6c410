//! A connection to one server, kept up: frames out, replies in, checked before anybody sees them.

use super::{
    connect::Connected,
    dispatch::{Reply, ToSend},
    job::Job,
    local_pool::{Drained, LocalPool, Task},
    metrics::ServerMetrics,
    shared::Shared,
};
use crate::{
    io::Stream,
    wire::{Incoming, Message, Mode, Reader, Violation, Writer, opcode},
};
use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{io::ReadBuf, time::Sleep};
use zeroize::Zeroizing;

/// A server that cannot be reached is tried again after this time, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Together with what waits in the dispatcher, what a server that does not read can make us keep.
const MOST_UNSENT: usize = 256 * 1024;
const READ_AT_ONCE: usize = 32 * 1024;

/// Why a connection has ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error("it closed the connection")]
    Closed,
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Violation(#[from] Violation),
    #[error("it does not answer")]
    Silent,
    #[error("it returned a wrong result")]
    Wrong,
    /// By this end.
    #[error("it is not needed any more")]
    Done,
}

/// This event loop's pool, with a connection to each server that is kept up from now on.
pub(super) fn start_pool(shared: &Arc<Shared>) -> Arc<LocalPool> {
    let pool = LocalPool::start(shared);
    for server in 0..shared.settings.servers.len() {
        tokio::spawn(keep_up(pool.task(), server));
    }
    pool
}

/// Connects, and connects again, until the client closes.
async fn keep_up(task: Task, server: usize) {
    let pool = Arc::clone(task.pool());
    let mut pause = FIRST_PAUSE;
    while !pool.is_closed() {
        if let Some(rest) = pool.shared.fleet.distrusted_for(Instant::now(), server) {
            // The client may close meanwhile.
            tokio::time::sleep(rest.min(LONGEST_PAUSE)).await;
            continue;
        }
        let began = Instant::now();
        let settings = &pool.shared.settings;
        let limit = settings.patience.deadline;
        match pool.shared.connector.connect(&settings.servers[server], limit).await {
            Ok(connected) => run(&pool, server, connected).await,
            Err(error) => pool.shared.fleet.unreachable(server, &error.to_string()),
        }
        if began.elapsed() > LONGEST_PAUSE {
            pause = FIRST_PAUSE;
        }
        tokio::time::sleep(jittered(pause)).await;
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

async fn run(pool: &Arc<LocalPool>, server: usize, connected: Connected) {
    let mut connection = Connection::new(Arc::clone(pool), server, connected);
    let ended = poll_fn(|context| connection.poll(context)).await;
    let fleet = &pool.shared.fleet;
    if let Ended::Violation(violation) = &ended {
        fleet.violated(server, violation);
    }
    if connection.up {
        pool.lost(server);
        fleet.disconnected(server, &ended.to_string());
    } else if !matches!(ended, Ended::Done) {
        // A server that does not believe this client's certificate closes the connection after the handshake.
        fleet.unreachable(
            server,
            &format!("{ended} right after the handshake; does it accept our certificate?"),
        );
    }
}

struct Connection {
    pool: Arc<LocalPool>,
    server: usize,
    stream: Stream,
    reader: Reader,
    writer: Writer,
    /// It has answered the first ping.
    up: bool,
    heard: Instant,
    /// Since when a ping waits for anything to come.
    pinged: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
    metrics: ServerMetrics,
    buffer: Zeroizing<Vec<u8>>,
}

impl Connection {
    fn new(pool: Arc<LocalPool>, server: usize, connected: Connected) -> Self {
        let Connected { stream, mode, .. } = connected;
        if mode == Mode::Compatible {
            pool.shared.compatible.store(true, std::sync::atomic::Ordering::Relaxed);
        }
        let mut writer = Writer::new(mode);
        writer.set_padded(pool.shared.settings.padding && mode == Mode::Batched);
        writer.put(&PING);
        let alarm = Box::pin(tokio::time::sleep(pool.shared.settings.patience.stall));
        let metrics = ServerMetrics::new(pool.shared.fleet.name(server));
        Self {
            pool,
            server,
            stream,
            reader: Reader::new(mode),
            writer,
            up: false,
            heard: Instant::now(),
            pinged: Some(Instant::now()),
            alarm,
            metrics,
            buffer: Zeroizing::new(vec![0; READ_AT_ONCE]),
        }
    }

    /// Reads and writes for as long as there is something to read or to write.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Ended> {
        match self.poll_all(context) {
            Err(ended) => Poll::Ready(ended),
            Ok(()) => Poll::Pending,
        }
    }

    fn poll_all(&mut self, context: &mut Context<'_>) -> Result<(), Ended> {
        while self.poll_read(context)?.is_ready() {}
        if self.pool.shared.fleet.is_distrusted(self.server) {
            return Err(Ended::Wrong);
        }
        loop {
            self.fill(context)?;
            if self.writer.is_empty() || self.poll_write(context)?.is_pending() {
                break;
            }
        }
        self.poll_alarm(context)
    }

    fn poll_read(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Ended> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut read = ReadBuf::new(&mut buffer);
        let polled = self.stream.as_mut().poll_read(context, &mut read)?;
        let count = read.filled().len();
        let outcome = match polled {
            Poll::Pending => Ok(Poll::Pending),
            Poll::Ready(()) if count == 0 => Err(Ended::Closed),
            Poll::Ready(()) => self.receive(&buffer[..count]).map(Poll::Ready),
        };
        self.buffer = buffer;
        outcome
    }

    fn receive(&mut self, bytes: &[u8]) -> Result<(), Ended> {
        self.heard = Instant::now();
        self.pinged = None;
        self.pool.heard(self.server);
        let mut reader = std::mem::replace(&mut self.reader, Reader::new(Mode::Batched));
        reader.receive(bytes);
        let handled = self.handle_all(&mut reader);
        self.reader = reader;
        handled
    }

    fn handle_all(&mut self, reader: &mut Reader) -> Result<(), Ended> {
        while let Some(incoming) = reader.next_message()? {
            match incoming {
                Incoming::Message(Message::Reply { id, result }) => self.reply(id, result)?,
                Incoming::Message(Message::Pong { .. }) => self.come_up(),
                Incoming::Message(Message::Ping { id, data }) => {
                    self.writer.put(&Message::Pong { id, data });
                }
                Incoming::Message(Message::Request(request)) => {
                    return Err(Violation::WrongSide(request.opcode).into());
                }
                Incoming::Message(Message::Withdraw { .. }) => {
                    return Err(Violation::WrongSide(opcode::WITHDRAW).into());
                }
                Incoming::Malformed { .. } => return Err(Violation::Lengths.into()),
            }
        }
        Ok(())
    }

    fn reply(&mut self, id: u32, result: Result<&[u8], crate::wire::ErrorCode>) -> Result<(), Ended> {
        let job = self.pool.asked(self.server, id)?;
        let reply = match result {
            Err(error) => {
                if job.is_some() {
                    self.metrics.refused.increment(1);
                }
                Reply::Refused(error)
            }
            Ok(bytes) => {
                if let Some(job) = &job {
                    self.check(job, bytes)?;
                    self.metrics.ok.increment(1);
                }
                Reply::Good(Zeroizing::new(bytes.to_vec()))
            }
        };
        let took = self.pool.replied(self.server, id, reply);
        self.metrics.seconds.record(took);
        Ok(())
    }

    /// No result is believed that the public key does not confirm.
    fn check(&self, job: &Job, bytes: &[u8]) -> Result<(), Ended> {
        if job.holds(bytes) {
            return Ok(());
        }
        let (fleet, patience) = (&self.pool.shared.fleet, &self.pool.shared.settings.patience);
        fleet.distrust(Instant::now(), self.server, patience.distrust, &job.key.ski().to_string());
        Err(Ended::Wrong)
    }

    fn come_up(&mut self) {
        if !std::mem::replace(&mut self.up, true) {
            self.pool.shared.fleet.connected(self.server);
            self.pool.up(self.server);
        }
    }

    /// Puts what is to be sent into frames: all that this turn of the event loop has brought.
    fn fill(&mut self, context: &Context<'_>) -> Result<(), Ended> {
        let (writer, reader) = (&mut self.writer, &mut self.reader);
        let send = |next: ToSend<Job>| {
            match next {
                ToSend::Withdraw(id) => drop(writer.put(&Message::Withdraw { id })),
                ToSend::Request(id, job) => {
                    if job.is_secret() {
                        reader.wipe();
                    }
                    writer.put(&Message::Request(job.request(id)));
                }
            }
            writer.len() < MOST_UNSENT
        };
        match self.pool.drain(self.server, context, send) {
            Drained::All => {}
            Drained::Suspect => self.ping(),
            Drained::Closed => return Err(Ended::Done),
        }
        Ok(())
    }

    fn poll_write(&mut self, context: &mut Context<'_>) -> Result<Poll<()>, Ended> {
        let count = match self.stream.as_mut().poll_write(context, self.writer.unsent())? {
            Poll::Pending => return Ok(Poll::Pending),
            Poll::Ready(0) => return Err(Ended::Closed),
            Poll::Ready(count) => count,
        };
        self.writer.advance(count);
        Ok(Poll::Ready(()))
    }

    /// Pings a server that has been quiet, and gives up one that does not answer a ping.
    fn poll_alarm(&mut self, context: &mut Context<'_>) -> Result<(), Ended> {
        let patience = self.pool.shared.settings.patience;
        loop {
            let due = match self.pinged {
                Some(pinged) => pinged + patience.stall / 2,
                None => self.heard + patience.ping,
            };
            if self.alarm.is_elapsed() || self.alarm.deadline() > due.into() {
                self.alarm.as_mut().reset(due.into());
            }
            if self.alarm.as_mut().poll(context).is_pending() {
                return Ok(());
            }
            match self.pinged {
                _ if due > Instant::now() => {}
                Some(_) => return Err(Ended::Silent),
                None => {
                    self.ping();
                    while !self.writer.is_empty() && self.poll_write(context)?.is_ready() {}
                }
            }
        }
    }

    fn ping(&mut self) {
        if self.pinged.is_none() {
            self.pinged = Some(Instant::now());
            self.writer.put(&PING);
        }
    }
}

const PING: Message<'static> = Message::Ping { id: 0, data: b"" };

/// Half of it to all of it, so that event loops do not come back all at once.
fn jittered(pause: Duration) -> Duration {
    let mut byte = [0; 1];
    // Without randomness, without jitter.
    let _ = boring::rand::rand_bytes(&mut byte);
    pause / 2 + pause / 2 * u32::from(byte[0]) / 255
}
