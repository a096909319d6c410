//! Replay of request bodies: the beginning is kept, so that a retry can send it again.

use super::{client_body::ClientBody, mirrored_body::Tap};
use crate::{
    held_bytes::HeldBytes,
    http::request::trailers::Trailers,
    memory::{self, Purpose},
    upstream::{BoxError, ClientBodyError, ExchangeError, RequestBody},
};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    time::Instant,
};

/// Maximum number of bytes that are kept: what an HTTP/2 endpoint with the initial window of 65,535 bytes has received when
/// it ends the connection before the request (RFC 9113 section 6.8), 16 KiB collected for it, and a frame of as many.
const MOST_REMEMBERED: usize = 96 * 1024;

/// The maximum while memory is scarce.
const MOST_WHILE_SCARCE: usize = 4 * 1024;

/// A body for several attempts, one after the other.
#[derive(Clone)]
pub(crate) struct Replay(Option<Arc<Mutex<Shared>>>);

struct Shared {
    /// `None` once the exchange is over.
    source: Option<ClientBody>,
    size: SizeHint,
    kept: HeldBytes,
    trailers: Option<HeaderMap>,
    complete: bool,
    /// Time at which the end was received.
    ended: Option<Instant>,
    /// Whether more was received than is kept.
    overflowed: bool,
    /// Receivers of copies of the body.
    taps: Vec<Tap>,
    /// Error of the client that ended the body, if any.
    failure: Option<ClientBodyError>,
    /// Number of attempts so far. Only the newest reads on.
    attempts: usize,
    /// Waker of the attempt that waits for the client.
    waiting: Option<Waker>,
}

/// The body of one attempt.
struct Attempt {
    shared: Arc<Mutex<Shared>>,
    /// Number of bytes that were sent.
    position: usize,
    ended: bool,
    number: usize,
    forwarded: Trailers,
}

impl Replay {
    pub(crate) fn new(source: ClientBody, taps: Vec<Tap>) -> Self {
        if source.is_end_stream() {
            return Self(None);
        }
        let mut kept = HeldBytes::new(Purpose::Retry);
        kept.belongs_to(source.holder());
        taps.iter().for_each(|tap| tap.belongs_to(source.holder()));
        Self(Some(Arc::new(Mutex::new(Shared {
            size: source.size_hint(),
            source: Some(source),
            kept,
            trailers: None,
            complete: false,
            ended: None,
            overflowed: false,
            taps,
            failure: None,
            attempts: 0,
            waiting: None,
        }))))
    }

    /// An empty body.
    pub(crate) fn empty() -> Self {
        Self(None)
    }

    /// Returns whether the whole body can be sent again.
    pub(crate) fn is_complete(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| !lock(shared).overflowed)
    }

    /// Returns whether another attempt can send the whole body; if so, the previous attempt stops reading. Its
    /// connection might still drive it, and would read on until the beginning is no longer kept.
    pub(crate) fn begin_again(&self) -> bool {
        self.0.as_ref().is_none_or(|shared| {
            let mut state = lock(shared);
            if state.overflowed {
                return false;
            }
            state.attempts += 1;
            let waiting = state.waiting.take();
            drop(state);
            waiting.into_iter().for_each(Waker::wake);
            true
        })
    }

    /// Returns a guard that ends the body with its exchange.
    pub(crate) fn end(&self) -> Option<EndOfBody> {
        self.0.clone().map(EndOfBody)
    }

    /// Attributes a failed exchange to the client if its body failed: an HTTP/2 connection to an endpoint only
    /// reports the reset that results from that.
    pub(crate) fn blame(&self, error: ExchangeError) -> ExchangeError {
        let failure =
            self.0.as_ref().and_then(|shared| lock(shared).failure.as_ref().map(ClientBodyError::copy));
        failure.map_or(error, ExchangeError::Client)
    }

    /// Returns the time at which the whole body was received; `otherwise` if there is no body.
    pub(crate) fn ended(&self, otherwise: Instant) -> Option<Instant> {
        self.0.as_ref().map_or(Some(otherwise), |shared| lock(shared).ended)
    }

    /// Returns the body of a further attempt, which has only the trailers that are `forwarded`.
    pub(crate) fn attempt(&self, forwarded: impl FnOnce() -> Trailers) -> RequestBody {
        match &self.0 {
            None => RequestBody::default(),
            Some(shared) => {
                let mut state = lock(shared);
                state.attempts += 1;
                let (number, shared) = (state.attempts, Arc::clone(shared));
                let forwarded = forwarded();
                RequestBody::new(Box::pin(Attempt { shared, position: 0, ended: false, number, forwarded }))
            }
        }
    }
}

/// A guard that stops the reading of the client's body when it is dropped. Otherwise an HTTP/2 connection to an
/// endpoint that responded early would continue to read, while the client's connection counts as idle.
pub(crate) struct EndOfBody(Arc<Mutex<Shared>>);

impl Drop for EndOfBody {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        let unread = (state.source.take(), std::mem::take(&mut state.taps));
        let waiting = state.waiting.take();
        drop(state);
        drop(unread);
        // The attempt sees the end and resets its stream.
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// Error that resets the stream of an attempt that is over.
fn over() -> BoxError {
    h2::Error::from(h2::Reason::CANCEL).into()
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Polls the next frame from the client.
    fn poll_source(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(source) = &mut self.source else { return Poll::Ready(Some(Err(over()))) };
        let frame = match ready!(Pin::new(source).poll_frame(context)) {
            None => {
                self.complete = true;
                self.end();
                return Poll::Ready(None);
            }
            Some(Ok(frame)) => frame,
            Some(Err(error)) => {
                self.failure = error.downcast_ref().map(ClientBodyError::copy);
                return Poll::Ready(Some(Err(error)));
            }
        };
        let most = if memory::is_scarce() { MOST_WHILE_SCARCE } else { MOST_REMEMBERED };
        match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) if !self.overflowed && self.kept.len() + data.len() <= most => {
                self.kept.push(data);
            }
            // Trailers are last, so the source is not polled again.
            (_, Some(trailers)) => (self.trailers, self.complete) = (Some(trailers.clone()), true),
            _ => {
                self.overflowed = true;
                self.kept.clear();
            }
        }
        self.taps.iter_mut().for_each(|tap| tap.push(&frame));
        if self.complete || self.source_has_ended() {
            self.end();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn source_has_ended(&self) -> bool {
        self.source.as_ref().is_some_and(ClientBody::is_end_stream)
    }

    fn end(&mut self) {
        self.ended.get_or_insert_with(Instant::now);
        self.taps.drain(..).for_each(Tap::end);
    }
}

impl Attempt {
    /// Returns the last frame of a body with these trailers.
    fn last(&self, trailers: HeaderMap) -> Option<Result<Frame<Bytes>, BoxError>> {
        self.forwarded.filter(trailers).map(|trailers| Ok(Frame::trailers(trailers)))
    }
}

impl Body for Attempt {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let shared = Arc::clone(&self.shared);
        let mut shared = lock(&shared);
        if self.number != shared.attempts {
            // The attempt has its response, or its connection still drives it: the rest is for a newer attempt.
            return Poll::Ready(Some(Err(over())));
        }
        if let Some(rest) = shared.kept.at(self.position) {
            self.position += rest.len();
            return Poll::Ready(Some(Ok(Frame::data(rest))));
        }
        if shared.complete {
            self.ended = true;
            return Poll::Ready(shared.trailers.clone().and_then(|trailers| self.last(trailers)));
        }
        let Poll::Ready(frame) = shared.poll_source(context) else {
            if !shared.waiting.as_ref().is_some_and(|waiting| waiting.will_wake(context.waker())) {
                shared.waiting = Some(context.waker().clone());
            }
            return Poll::Pending;
        };
        self.position = shared.kept.len();
        Poll::Ready(match frame.map(|frame| frame.map(Frame::into_trailers)) {
            None => None,
            Some(Err(error)) => Some(Err(error)),
            Some(Ok(Err(frame))) => Some(Ok(frame)),
            Some(Ok(Ok(trailers))) => {
                self.ended = true;
                self.last(trailers)
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        let shared = lock(&self.shared);
        let complete = shared.complete || shared.source_has_ended();
        complete && self.position >= shared.kept.len() && (self.ended || shared.trailers.is_none())
    }

    fn size_hint(&self) -> SizeHint {
        if self.position == 0 { lock(&self.shared).size } else { SizeHint::default() }
    }
}
