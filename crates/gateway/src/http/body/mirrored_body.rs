//! The body of a mirrored request: the frames that were sent to the main upstream, shared with the copy.

use crate::{
    held_bytes::HeldBytes,
    http::request::trailers::Trailers,
    memory::{self, Holder, Purpose},
    upstream::BoxError,
};
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Maximum number of bytes that wait for the mirror. A copy that lags further behind is abandoned.
const MOST_WAITING: usize = 256 * 1024;

/// The maximum while memory is scarce.
const MOST_WHILE_SCARCE: usize = 16 * 1024;

/// The sending half of a copied body.
pub(crate) struct Tap(Arc<Mutex<Shared>>);

/// The receiving half of a copied body.
pub(crate) struct MirroredBody {
    shared: Arc<Mutex<Shared>>,
    size: SizeHint,
    begun: bool,
    ended: bool,
    forwarded: Trailers,
}

/// Frames that wait for the mirror.
struct Shared {
    data: HeldBytes,
    trailers: Option<HeaderMap>,
    state: State,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Complete,
    /// The body is incomplete, or one of its halves is gone.
    Abandoned,
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is incomplete, or the copy fell behind")]
struct Incomplete;

/// Creates both halves for a body of this size.
pub(crate) fn tap(size: SizeHint) -> (Tap, MirroredBody) {
    let data = HeldBytes::new(Purpose::Mirror);
    let shared = Shared { data, trailers: None, state: State::Open, waker: None };
    let shared = Arc::new(Mutex::new(shared));
    let tap = Tap(Arc::clone(&shared));
    (tap, MirroredBody { shared, size, begun: false, ended: false, forwarded: Trailers::none() })
}

impl MirroredBody {
    /// Returns the body with those of its trailers that are `forwarded`.
    pub(crate) fn forwarding(mut self, forwarded: Trailers) -> Self {
        self.forwarded = forwarded;
        self
    }
}

impl Tap {
    /// Attributes the data to an exchange.
    pub(crate) fn belongs_to(&self, holder: &Arc<Holder>) {
        lock(&self.0).data.belongs_to(holder);
    }

    pub(crate) fn push(&mut self, frame: &Frame<Bytes>) {
        change(&self.0, |shared| {
            if shared.state != State::Open {
                return;
            }
            if let Some(data) = frame.data_ref() {
                let most = if memory::is_scarce() { MOST_WHILE_SCARCE } else { MOST_WAITING };
                if shared.data.len() + data.len() > most {
                    return shared.abandon();
                }
                shared.data.push(data);
            }
            if let Some(trailers) = frame.trailers_ref() {
                shared.trailers = Some(trailers.clone());
            }
        });
    }

    /// Marks the body as complete. If the tap is dropped without it, the copy fails.
    pub(crate) fn end(self) {
        change(&self.0, |shared| {
            if shared.state == State::Open {
                shared.state = State::Complete;
            }
        });
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        change(&self.0, |shared| {
            if shared.state == State::Open {
                shared.abandon();
            }
        });
    }
}

impl Drop for MirroredBody {
    fn drop(&mut self) {
        lock(&self.shared).abandon();
    }
}

impl Shared {
    /// Discards what waits.
    fn abandon(&mut self) {
        self.data.clear();
        (self.trailers, self.state) = (None, State::Abandoned);
    }

    /// Returns whether everything was received.
    fn is_over(&self) -> bool {
        self.state == State::Complete && self.data.is_empty() && self.trailers.is_none()
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Changes the state, and wakes the receiver.
fn change(shared: &Mutex<Shared>, change: impl FnOnce(&mut Shared)) {
    let mut shared = lock(shared);
    change(&mut shared);
    let waker = shared.waker.take();
    drop(shared);
    waker.into_iter().for_each(Waker::wake);
}

impl Body for MirroredBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.ended {
            return Poll::Ready(None);
        }
        let this = &mut *self;
        this.begun = true;
        let mut shared = lock(&this.shared);
        let frame = match shared.data.pop() {
            Some(data) => Some(Ok(Frame::data(data))),
            None if shared.state == State::Abandoned => Some(Err(Incomplete.into())),
            None => {
                let trailers = shared.trailers.take().and_then(|trailers| this.forwarded.filter(trailers));
                trailers.map(|trailers| Ok(Frame::trailers(trailers)))
            }
        };
        // The sender checks whether this was the last piece.
        this.ended = shared.is_over();
        if frame.is_none() && !this.ended {
            shared.waker = Some(context.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ended
    }

    fn size_hint(&self) -> SizeHint {
        if self.begun { SizeHint::default() } else { self.size }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;

    async fn received(body: MirroredBody) -> Result<Bytes, BoxError> {
        Ok(body.collect().await?.to_bytes())
    }

    #[tokio::test]
    async fn a_copy_has_all_pieces() {
        let (mut tap, body) = tap(SizeHint::default());
        for piece in ["one ", "two"] {
            tap.push(&Frame::data(Bytes::from_static(piece.as_bytes())));
        }
        tap.end();
        assert_eq!(received(body).await.expect("a body"), "one two");

        let (mut tap, mut body) = self::tap(SizeHint::with_exact(3));
        tap.push(&Frame::data(Bytes::from_static(b"one")));
        tap.end();
        assert_eq!(body.size_hint().exact(), Some(3));
        assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
        assert!(body.is_end_stream(), "known with the last piece");
    }

    #[tokio::test]
    async fn an_incomplete_or_too_fast_body_fails_the_copy() {
        let (mut tap, body) = self::tap(SizeHint::default());
        tap.push(&Frame::data(Bytes::from_static(b"one")));
        drop(tap);
        assert!(received(body).await.is_err());

        let (mut tap, body) = self::tap(SizeHint::default());
        let piece = Bytes::from(vec![0; MOST_WAITING / 2]);
        (0..3).for_each(|_| tap.push(&Frame::data(piece.clone())));
        tap.end();
        assert!(received(body).await.is_err());
    }
}
