//! How long a connection may wait for a request, and a request's header for its end.

use quadrille_config::model::Timeouts;
use std::{
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Bounds the time from the first byte of an HTTP/1 request to the end of its header, from the end of the TLS handshake
/// to the end of an HTTP/2 preface, and between two requests, so that a client that sends a byte now and then, or none
/// at all, does not hold a connection for ever.
#[derive(Debug)]
pub(crate) struct RequestClock {
    accepted: Instant,
    header: Duration,
    request: Option<Duration>,
    idle: Duration,
    /// Requests under way.
    requests: AtomicU32,
    /// Milliseconds since accept when the header's first byte came; `NONE` before it and behind the header.
    header_began: AtomicU64,
    /// Milliseconds since accept when the last request ended.
    idle_since: AtomicU64,
}

const NONE: u64 = u64::MAX;

impl RequestClock {
    pub(crate) fn new(timeouts: &Timeouts) -> Self {
        Self {
            accepted: Instant::now(),
            header: timeouts.header,
            request: timeouts.request,
            idle: timeouts.idle,
            requests: AtomicU32::new(0),
            header_began: AtomicU64::new(NONE),
            idle_since: AtomicU64::new(0),
        }
    }

    /// When the connection was ready for its first request.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// A connection that comes late in a drain waits for its one request for this long at most.
    pub(crate) fn shorten_idle(&mut self, most: Duration) {
        self.idle = self.idle.min(most);
        self.idle_since = AtomicU64::new(self.now());
    }

    pub(crate) fn idle_limit(&self) -> Duration {
        self.idle
    }

    /// When the body of a request whose header is complete now must have come.
    pub(crate) fn request_due(&self) -> Option<Instant> {
        Some(Instant::now() + self.request?)
    }

    /// A header, or the preface, begins now.
    pub(crate) fn begin_header(&self) {
        self.header_began.store(self.now(), Ordering::Relaxed);
    }

    /// The preface is complete.
    pub(crate) fn end_header(&self) {
        self.header_began.store(NONE, Ordering::Relaxed);
    }

    /// Bytes have come from an HTTP/1 client: where no request is under way, they are a header's. True if that header
    /// is overdue.
    pub(crate) fn received_is_overdue(&self) -> bool {
        if self.requests.load(Ordering::Relaxed) > 0 {
            return false;
        }
        match self.header_began.load(Ordering::Relaxed) {
            NONE => {
                self.begin_header();
                false
            }
            began => self.now() > began.saturating_add(millis(self.header)),
        }
    }

    /// A request's header is complete.
    pub(crate) fn begin_request(&self) {
        self.end_header();
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has been answered, or given up.
    pub(crate) fn end_request(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether no request is under way.
    pub(crate) fn has_no_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// When the header that has begun must be complete.
    pub(crate) fn header_due(&self) -> Option<Instant> {
        let began = self.header_began.load(Ordering::Relaxed);
        (began != NONE).then(|| self.accepted + Duration::from_millis(began) + self.header)
    }

    /// Since when there is no request; `None` while there is one.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let since = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        self.has_no_requests().then(|| self.accepted + since)
    }

    /// When the next request must have begun; `None` while there is one.
    pub(crate) fn idle_due(&self) -> Option<Instant> {
        Some(self.idle_since()? + self.idle)
    }

    fn now(&self) -> u64 {
        millis(self.accepted.elapsed())
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(NONE - 1)
}
