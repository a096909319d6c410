//! Timeouts of requests and request headers on a connection.

use quadrille_config::model::Timeouts;
use std::{
    sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// Limits the time from the first byte of an HTTP/1 request to the end of its header, from the end of the TLS
/// handshake to the end of an HTTP/2 preface, and between two requests. A client that sends a byte now and then, or
/// nothing, cannot hold a connection forever.
#[derive(Debug)]
pub(crate) struct RequestClock {
    accepted: Instant,
    header: Duration,
    request: Option<Duration>,
    idle: Duration,
    /// Number of requests in progress.
    requests: AtomicU32,
    /// Milliseconds since accept at the header's first byte; `NONE` before and after the header.
    header_began: AtomicU64,
    /// Milliseconds since accept at the end of the last request, or when data was last forwarded.
    idle_since: AtomicU64,
    /// Whether data was forwarded as bytes.
    has_forwarded: AtomicBool,
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
            has_forwarded: AtomicBool::new(false),
        }
    }

    /// Returns when the connection was ready for its first request.
    pub(crate) fn accepted(&self) -> Instant {
        self.accepted
    }

    /// Limits the idle time of a connection accepted during a drain.
    pub(crate) fn shorten_idle(&mut self, most: Duration) {
        self.idle = self.idle.min(most);
        self.idle_since = AtomicU64::new(self.now());
    }

    pub(crate) fn idle_limit(&self) -> Duration {
        self.idle
    }

    /// Returns the deadline for the body of a request whose header is complete now.
    pub(crate) fn request_due(&self) -> Option<Instant> {
        Some(Instant::now() + self.request?)
    }

    /// Records the start of a header or the preface.
    pub(crate) fn begin_header(&self) {
        self.header_began.store(self.now(), Ordering::Relaxed);
    }

    /// Records the end of the preface.
    pub(crate) fn end_header(&self) {
        self.header_began.store(NONE, Ordering::Relaxed);
    }

    /// Records bytes from an HTTP/1 client: without a request in progress, they belong to a header. Returns whether
    /// that header is overdue.
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

    /// Records the end of a request's header.
    pub(crate) fn begin_request(&self) {
        self.end_header();
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a request was completed or aborted.
    pub(crate) fn end_request(&self) {
        self.idle_since.store(self.now(), Ordering::Relaxed);
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// Records that data was forwarded as bytes, in TCP mode or in a tunnel.
    pub(crate) fn forward(&self, at: Instant) {
        self.has_forwarded.store(true, Ordering::Relaxed);
        self.idle_since.store(millis(at.saturating_duration_since(self.accepted)), Ordering::Relaxed);
    }

    /// Returns when data was last forwarded as bytes; `None` before that.
    pub(crate) fn forwarded_at(&self) -> Option<Instant> {
        let at = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        self.has_forwarded.load(Ordering::Relaxed).then(|| self.accepted + at)
    }

    /// Returns whether there is no request in progress.
    pub(crate) fn has_no_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) == 0
    }

    /// Returns the deadline for the end of the current header.
    pub(crate) fn header_due(&self) -> Option<Instant> {
        let began = self.header_began.load(Ordering::Relaxed);
        (began != NONE).then(|| self.accepted + Duration::from_millis(began) + self.header)
    }

    /// Returns since when the connection is idle; `None` during a request.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let since = Duration::from_millis(self.idle_since.load(Ordering::Relaxed));
        self.has_no_requests().then(|| self.accepted + since)
    }

    /// Returns since when the connection waits for its client: for a request to start, or for the rest of its header;
    /// `None` during a request.
    pub(crate) fn waits_since(&self) -> Option<Instant> {
        let idle = self.idle_since()?;
        match self.header_began.load(Ordering::Relaxed) {
            NONE => Some(idle),
            began => Some(self.accepted + Duration::from_millis(began)),
        }
    }

    /// Returns the deadline for the start of the next request; `None` during a request.
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
