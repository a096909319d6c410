//! Circuit breaker: limits of concurrent requests, connections and retries of an upstream, and requests that wait.

use quadrille_config::model::UpstreamLimits;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit, Semaphore};

/// The limits with their counters.
pub(super) struct Breaker {
    limits: UpstreamLimits,
    connections: Option<Arc<Semaphore>>,
    requests: AtomicUsize,
    pending: AtomicUsize,
    retries: AtomicUsize,
}

/// A limit is reached.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overloaded;

/// Guard of a count.
pub(super) struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(count: &'a AtomicUsize, limit: usize) -> Result<Self, Overloaded> {
        take(count, limit).map(|()| Self(count))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Breaker {
    pub(super) fn new(limits: &UpstreamLimits) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count.min(Semaphore::MAX_PERMITS)));
        Self {
            limits: limits.clone(),
            connections: limits.connections.map(|count| semaphore(count.get())),
            requests: AtomicUsize::new(0),
            pending: AtomicUsize::new(0),
            retries: AtomicUsize::new(0),
        }
    }

    /// Counts a request until [`end_request`](Self::end_request).
    pub(super) fn begin_request(&self) -> Result<(), Overloaded> {
        match self.limits.requests {
            Some(limit) => take(&self.requests, limit.get()),
            None => Ok(()),
        }
    }

    pub(super) fn end_request(&self) {
        if self.limits.requests.is_some() {
            self.requests.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits for a connection permit; `None` if connections are not limited.
    pub(super) async fn connection(&self) -> Result<Option<OwnedSemaphorePermit>, Overloaded> {
        let Some(connections) = &self.connections else { return Ok(None) };
        if let Ok(permit) = Arc::clone(connections).try_acquire_owned() {
            return Ok(Some(permit));
        }
        let _pending = self.pending_place()?;
        let acquired = Arc::clone(connections).acquire_owned();
        let permit = match self.limits.pending_timeout {
            None => acquired.await,
            Some(limit) => tokio::time::timeout(limit, acquired).await.map_err(|_| Overloaded)?,
        };
        // The semaphore is never closed.
        permit.map(Some).map_err(|_| Overloaded)
    }

    /// Counts a waiting request while the guard lives.
    pub(super) fn pending_place(&self) -> Result<Option<Place<'_>>, Overloaded> {
        self.limits.pending.map(|limit| Place::take(&self.pending, limit)).transpose()
    }

    /// Returns a connection permit without waiting.
    pub(super) fn connection_now(&self) -> Result<Option<OwnedSemaphorePermit>, Overloaded> {
        let Some(connections) = &self.connections else { return Ok(None) };
        Arc::clone(connections).try_acquire_owned().map(Some).map_err(|_| Overloaded)
    }

    /// Counts a retry until [`end_retry`](Self::end_retry).
    pub(super) fn begin_retry(&self) -> Result<(), Overloaded> {
        match self.limits.retries {
            Some(limit) => take(&self.retries, limit),
            None => Ok(()),
        }
    }

    pub(super) fn end_retry(&self) {
        if self.limits.retries.is_some() {
            self.retries.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Requests that wait, in order of arrival, for an endpoint below its maximum number of active requests.
#[derive(Default)]
pub(super) struct WaitingLine {
    length: AtomicUsize,
    /// Held by the request that is served next.
    head: Mutex<()>,
}

/// Guard that counts a waiting request.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl WaitingLine {
    /// Returns the number of waiting requests.
    pub(super) fn length(&self) -> usize {
        self.length.load(Ordering::Relaxed)
    }

    /// Counts a waiting request while the guard lives.
    pub(super) fn join(&self) -> Waiting<'_> {
        self.length.fetch_add(1, Ordering::Relaxed);
        Waiting(&self.length)
    }

    /// Waits until all requests before this one have an endpoint. Those behind it wait while the guard lives.
    pub(super) async fn head(&self) -> MutexGuard<'_, ()> {
        self.head.lock().await
    }
}

fn take(count: &AtomicUsize, limit: usize) -> Result<(), Overloaded> {
    let more = |count| (count < limit).then_some(count + 1);
    count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map(drop).map_err(|_| Overloaded)
}

#[cfg(test)]
mod tests {
    use super::{Breaker, Overloaded, UpstreamLimits};
    use std::{
        future::Future,
        num::NonZeroUsize,
        pin::pin,
        task::{Context, Poll, Waker},
    };

    #[test]
    fn requests_beyond_the_limit_are_refused_until_one_has_ended() {
        let limits = UpstreamLimits { requests: NonZeroUsize::new(2), ..UpstreamLimits::default() };
        let breaker = Breaker::new(&limits);
        assert_eq!([(); 3].map(|()| breaker.begin_request()), [Ok(()), Ok(()), Err(Overloaded)]);
        breaker.end_request();
        assert_eq!([(); 2].map(|()| breaker.begin_request()), [Ok(()), Err(Overloaded)]);
        assert_eq!(breaker.begin_retry(), Ok(()), "without a limit");
    }

    #[test]
    fn no_retry_at_all_is_a_limit_too() {
        let breaker = Breaker::new(&UpstreamLimits { retries: Some(0), ..UpstreamLimits::default() });
        assert_eq!(breaker.begin_retry(), Err(Overloaded));
    }

    #[test]
    fn so_many_wait_for_a_connection_and_the_next_are_refused() {
        let limits = UpstreamLimits {
            connections: NonZeroUsize::new(1),
            pending: Some(1),
            ..UpstreamLimits::default()
        };
        let breaker = Breaker::new(&limits);
        let mut context = Context::from_waker(Waker::noop());
        let Poll::Ready(Ok(first)) = pin!(breaker.connection()).poll(&mut context) else { panic!("a place") };
        assert!(first.is_some());
        {
            let mut second = pin!(breaker.connection());
            assert!(second.as_mut().poll(&mut context).is_pending());
            let third = pin!(breaker.connection()).poll(&mut context);
            assert!(matches!(third, Poll::Ready(Err(Overloaded))));
            assert!(matches!(breaker.connection_now(), Err(Overloaded)));
            drop(first);
            assert!(second.poll(&mut context).is_ready());
        }
        assert!(breaker.connection_now().is_ok(), "a dropped waiter holds no permit");
    }
}
