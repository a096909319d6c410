//! What is known about one accepted connection: plain data that the way of a connection hands on, and telemetry reads.

use quadrille_config::model::Timeouts;
use quadrille_engine::KeyType;
use std::{
    net::SocketAddr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// What is known about one accepted connection once its handshake is done.
pub(crate) struct Connection {
    /// The client, as the PROXY protocol announces it where that is in use.
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
    /// Whether what follows is about TLS; without it, the rest is empty.
    pub(crate) tls: bool,
    pub(crate) sni: Option<String>,
    pub(crate) version: &'static str,
    pub(crate) cipher: &'static str,
    pub(crate) resumed: bool,
    /// Whether what is read now came before the handshake was complete, and may be a copy.
    pub(crate) early: AtomicBool,
    pub(crate) handshake: Duration,
    pub(crate) key: Option<KeyTiming>,
    pub(crate) header_clock: HeaderClock,
}

/// What the private-key operation of one handshake took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyTiming {
    pub(crate) key_type: KeyType,
    pub(crate) waited: Duration,
    pub(crate) computed: Duration,
    pub(crate) batch: usize,
    /// On compute threads.
    pub(crate) cpu: Duration,
}

/// What became of the session that a client offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionOutcome {
    /// It offered none.
    New,
    Hit(ResumptionKind),
    Miss(ResumptionKind, &'static str),
}

/// How a client offers a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ResumptionKind {
    Ticket,
    Id,
}

impl Connection {
    /// One without TLS.
    pub(crate) fn plain(client: SocketAddr, local: SocketAddr, timeouts: &Timeouts) -> Self {
        Self {
            client,
            local,
            tls: false,
            sni: None,
            version: "none",
            cipher: "none",
            resumed: false,
            early: AtomicBool::new(false),
            handshake: Duration::ZERO,
            key: None,
            header_clock: HeaderClock::new(timeouts),
        }
    }

    /// Of the URLs that lead here.
    pub(crate) fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({} -> {})", self.client, self.local)
    }
}

/// Bounds the time from the first byte of an HTTP/1 request to the end of its header, and from the end of the TLS
/// handshake to the end of an HTTP/2 preface, so that a client that sends a byte now and then, or none at all, does
/// not hold a connection for ever.
pub(crate) struct HeaderClock {
    accepted: Instant,
    limit: Duration,
    /// Milliseconds since accept when the first byte came; `IDLE` before it, `OFF` behind the header.
    began: AtomicU64,
}

const IDLE: u64 = u64::MAX - 1;
const OFF: u64 = u64::MAX;

impl HeaderClock {
    pub(crate) fn new(timeouts: &Timeouts) -> Self {
        Self { accepted: Instant::now(), limit: timeouts.header, began: AtomicU64::new(OFF) }
    }

    /// The next request may begin: its first byte starts the clock.
    pub(crate) fn expect_header(&self) {
        self.began.store(IDLE, Ordering::Relaxed);
    }

    /// Starts the clock now.
    pub(crate) fn start(&self) {
        let now = u64::try_from(self.accepted.elapsed().as_millis()).unwrap_or(0);
        self.began.store(now, Ordering::Relaxed);
    }

    /// The header is complete.
    pub(crate) fn stop(&self) {
        self.began.store(OFF, Ordering::Relaxed);
    }

    /// Bytes have come.
    pub(crate) fn bytes(&self) {
        if self.began.load(Ordering::Relaxed) == IDLE {
            self.start();
        }
    }

    /// When the header must be complete; `None` if none has begun.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.began.load(Ordering::Relaxed) {
            IDLE | OFF => None,
            began => Some(self.accepted + Duration::from_millis(began) + self.limit),
        }
    }
}
