//! Request bodies on their way to an endpoint, with their progress.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, Full};
use std::{
    error::Error,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU8, AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Source of a request's body.
pub(crate) type BodySource = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// Body of a request; empty for most requests.
#[derive(Default)]
pub(crate) struct RequestBody(Option<(BodySource, Arc<BodyProgress>)>);

/// Progress of a body.
#[derive(Debug, Default)]
pub(crate) struct BodyProgress {
    /// Number of frames taken from it.
    frames: AtomicU32,
    state: AtomicU8,
}

const TO_BE_TAKEN: u8 = 0;
const WAITS_FOR_CLIENT: u8 = 1;
const COMPLETE: u8 = 2;

impl RequestBody {
    pub(crate) fn new(source: BodySource) -> Self {
        Self(Some((source, Arc::default())))
    }

    /// Creates a body from available bytes.
    pub(crate) fn whole(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            return Self::default();
        }
        Self::new(Box::pin(Full::new(bytes).map_err(|never| -> BoxError { match never {} })))
    }

    pub(crate) fn progress(&self) -> Option<Arc<BodyProgress>> {
        self.0.as_ref().map(|(_, progress)| Arc::clone(progress))
    }
}

impl BodyProgress {
    pub(crate) fn frames(&self) -> u32 {
        self.frames.load(Ordering::Relaxed)
    }

    /// Returns whether the body waits for the client, and the server has received all available data.
    pub(crate) fn waits_for_client(&self) -> bool {
        self.state.load(Ordering::Relaxed) == WAITS_FOR_CLIENT
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.state.load(Ordering::Relaxed) == COMPLETE
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some((source, progress)) = &mut self.0 else { return Poll::Ready(None) };
        let poll = source.as_mut().poll_frame(context);
        let state = match &poll {
            Poll::Pending => WAITS_FOR_CLIENT,
            Poll::Ready(None) => COMPLETE,
            Poll::Ready(Some(_)) if source.is_end_stream() => COMPLETE,
            Poll::Ready(Some(_)) => TO_BE_TAKEN,
        };
        progress.state.store(state, Ordering::Relaxed);
        if poll.is_ready() {
            progress.frames.fetch_add(1, Ordering::Relaxed);
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|(source, _)| source.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or_else(|| SizeHint::with_exact(0), |(source, _)| source.size_hint())
    }
}
