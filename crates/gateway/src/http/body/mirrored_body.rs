//! The body of a mirrored request: the frames that were sent to the main upstream, shared with the copy.

use crate::upstream::BoxError;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};
use tokio::sync::mpsc;

/// Maximum number of bytes that wait for the mirror. A copy that lags further behind is abandoned.
const MOST_WAITING: usize = 256 * 1024;

/// The sending half of a copied body.
pub(crate) struct Tap {
    /// `None` once the copy was abandoned.
    pieces: Option<mpsc::UnboundedSender<Piece>>,
    waiting: Arc<AtomicUsize>,
}

/// The receiving half of a copied body.
pub(crate) struct MirroredBody {
    pieces: mpsc::UnboundedReceiver<Piece>,
    waiting: Arc<AtomicUsize>,
    size: SizeHint,
    /// The next piece, if it was received early.
    ahead: Option<Piece>,
    begun: bool,
    ended: bool,
}

enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

#[derive(Debug, thiserror::Error)]
#[error("the request body is incomplete, or the copy fell behind")]
struct Incomplete;

/// Creates both halves for a body of this size.
pub(crate) fn tap(size: SizeHint) -> (Tap, MirroredBody) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let tap = Tap { pieces: Some(sender), waiting: Arc::clone(&waiting) };
    (tap, MirroredBody { pieces: receiver, waiting, size, ahead: None, begun: false, ended: false })
}

impl Tap {
    pub(crate) fn push(&mut self, frame: &Frame<Bytes>) {
        let length = frame.data_ref().map_or(0, Bytes::len);
        if self.waiting.fetch_add(length, Ordering::Relaxed) + length > MOST_WAITING {
            self.pieces = None;
        }
        let piece = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) => Piece::Data(data.clone()),
            (_, Some(trailers)) => Piece::Trailers(trailers.clone()),
            _ => return,
        };
        self.send(piece);
    }

    /// Marks the body as complete. If the tap is dropped without it, the copy fails.
    pub(crate) fn end(self) {
        self.send(Piece::End);
    }

    fn send(&self, piece: Piece) {
        if let Some(pieces) = &self.pieces {
            // The copy may be gone already.
            let _ = pieces.send(piece);
        }
    }
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
        self.begun = true;
        let next = match self.ahead.take() {
            Some(piece) => Some(piece),
            None => ready!(self.pieces.poll_recv(context)),
        };
        Poll::Ready(match next {
            Some(Piece::Data(data)) => {
                self.waiting.fetch_sub(data.len(), Ordering::Relaxed);
                // The sender checks whether this was the last piece.
                match self.pieces.try_recv() {
                    Ok(Piece::End) => self.ended = true,
                    Ok(other) => self.ahead = Some(other),
                    Err(_) => {}
                }
                Some(Ok(Frame::data(data)))
            }
            Some(Piece::Trailers(trailers)) => Some(Ok(Frame::trailers(trailers))),
            Some(Piece::End) => {
                self.ended = true;
                None
            }
            None => Some(Err(Incomplete.into())),
        })
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
