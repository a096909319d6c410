//! Received data of a connection that its exchanges have not taken yet, and the receiving halves of its streams.

use crate::{
    held_bytes::HeldBytes,
    memory::{self, Holder, Purpose},
};
use bytes::Bytes;
use h2::RecvStream;
use http_body::Frame;
use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker, ready},
};

/// Receive window of a stream in bytes: the maximum that an exchange holds.
const STREAM_WINDOW: u32 = 256 * 1024;

/// Receive window of the streams of connections that begin while memory is scarce.
const SCARCE_WINDOW: u32 = 64 * 1024;

/// h2's budget for small frames that wait. It counts the frames of all streams together, and ends the connection. The
/// queue of h2 is bounded by [`MOST_QUEUED`] instead.
pub(crate) const FRAME_BUDGET: usize = usize::MAX / 2;

/// Number of bytes that are read from a connection before unread data is moved to the exchanges.
const MOST_QUEUED: usize = 64 * 1024;

/// Length of a frame's header (RFC 9113 section 4.1).
const FRAME_HEADER: usize = 9;

/// Number of registered streams from which those that have ended are removed.
const FEW: usize = 16;

/// Receive windows of a connection and its streams in bytes.
pub(crate) struct Windows {
    pub(crate) stream: u32,
    /// Window of the connection: room for all streams.
    pub(crate) connection: u32,
}

impl Windows {
    /// Returns the windows of a connection that begins now, with this maximum number of concurrent streams.
    pub(crate) fn of(streams: u32) -> Self {
        let stream = if memory::is_scarce() { SCARCE_WINDOW } else { STREAM_WINDOW };
        Self { stream, connection: streams * stream }
    }
}

/// The received data of a connection. Clones refer to the same connection.
#[derive(Clone, Default)]
pub(crate) struct Intake(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Upper bound of the bytes that were read from the connection and not taken by exchanges.
    unread: AtomicUsize,
    /// Whether the reader waits until unread data is moved.
    stopped: AtomicBool,
    streams: Mutex<Streams>,
}

#[derive(Default)]
struct Streams {
    list: Vec<Weak<Mutex<State>>>,
    /// Length of the list at which ended streams are removed next.
    next_removal: usize,
}

impl Intake {
    /// Registers a stream.
    pub(crate) fn open(&self, stream: RecvStream) -> IncomingStream {
        let (stream, state) = IncomingStream::new(stream, self.clone());
        self.streams().add(state);
        stream
    }

    /// Returns whether the connection may be read on.
    pub(super) fn may_read(&self) -> bool {
        let may = self.0.unread.load(Ordering::Relaxed) < MOST_QUEUED;
        if !may {
            self.0.stopped.store(true, Ordering::Relaxed);
        }
        may
    }

    /// Counts bytes that were read from the connection.
    pub(super) fn received(&self, bytes: usize) {
        self.0.unread.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts the data of a frame that an exchange has taken.
    fn taken(&self, bytes: usize) {
        let taken = bytes + FRAME_HEADER;
        let less = |unread: usize| Some(unread.saturating_sub(taken));
        let _ = self.0.unread.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Returns whether the reader has stopped. It continues once the driver has called [`Self::relieve`].
    pub(crate) fn has_stopped(&self) -> bool {
        self.0.stopped.load(Ordering::Relaxed)
    }

    /// Moves the unread data to its exchanges, if there is much. Returns whether the reader had stopped, so that the
    /// driver must read on.
    pub(crate) fn relieve(&self) -> bool {
        if !self.0.stopped.swap(false, Ordering::Relaxed) {
            return false;
        }
        if self.0.unread.load(Ordering::Relaxed) >= MOST_QUEUED {
            self.streams().move_unread();
            self.0.unread.store(0, Ordering::Relaxed);
        }
        true
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.0.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Streams {
    fn add(&mut self, stream: Weak<Mutex<State>>) {
        if self.list.len() >= self.next_removal.max(FEW) {
            self.list.retain(|stream| stream.strong_count() > 0);
            self.next_removal = 2 * self.list.len();
        }
        self.list.push(stream);
    }

    fn move_unread(&mut self) {
        self.list.retain(|stream| {
            let stream = stream.upgrade();
            if let Some(stream) = &stream {
                stream.lock().unwrap_or_else(PoisonError::into_inner).move_unread();
            }
            stream.is_some()
        });
    }
}

/// The receiving half of a stream. The window opens as data is taken.
pub(crate) struct IncomingStream {
    state: Arc<Mutex<State>>,
    intake: Intake,
    data_ended: bool,
}

struct State {
    stream: RecvStream,
    /// Data that was moved out of h2's queue. Its capacity is not released yet.
    held: HeldBytes,
    /// Waker of the exchange.
    reader: Option<Waker>,
}

impl IncomingStream {
    fn new(stream: RecvStream, intake: Intake) -> (Self, Weak<Mutex<State>>) {
        let state =
            Arc::new(Mutex::new(State { stream, held: HeldBytes::new(Purpose::Unread), reader: None }));
        let weak = Arc::downgrade(&state);
        (Self { state, intake, data_ended: false }, weak)
    }

    /// Attributes unread data to an exchange.
    pub(crate) fn belongs_to(&self, holder: &Arc<Holder>) {
        self.state().held.belongs_to(holder);
    }

    /// Polls the next data; `None` at its end.
    pub(crate) fn poll_data(&self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let mut state = self.state();
        let data = match state.held.pop() {
            Some(data) => data,
            None => match state.poll_queue(context) {
                Poll::Ready(Some(Ok(data))) => {
                    self.intake.taken(data.len());
                    data
                }
                other => return other,
            },
        };
        Poll::Ready(Some(state.stream.flow_control().release_capacity(data.len()).map(|()| data)))
    }

    /// Polls the next data or the trailers.
    pub(crate) fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.data_ended {
            match ready!(self.poll_data(context)) {
                Some(data) => return Poll::Ready(Some(data.map(Frame::data))),
                None => self.data_ended = true,
            }
        }
        let trailers = ready!(self.state().stream.poll_trailers(context));
        Poll::Ready(trailers.map(|trailers| trailers.map(Frame::trailers)).transpose())
    }

    /// Returns whether the stream was read completely.
    pub(crate) fn is_end_stream(&self) -> bool {
        let state = self.state();
        state.held.is_empty() && state.stream.is_end_stream()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn poll_queue(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, h2::Error>>> {
        let poll = self.stream.poll_data(context);
        if poll.is_pending() && !self.reader.as_ref().is_some_and(|reader| reader.will_wake(context.waker()))
        {
            self.reader = Some(context.waker().clone());
        }
        poll
    }

    /// Moves the data that h2 has queued. Errors and the end remain for the exchange.
    fn move_unread(&mut self) {
        // h2 keeps one waker, which must remain that of the exchange.
        let waker = self.reader.as_ref().unwrap_or(Waker::noop());
        let mut context = Context::from_waker(waker);
        while let Poll::Ready(Some(Ok(data))) = self.stream.poll_data(&mut context) {
            self.held.push(&data);
        }
    }
}
