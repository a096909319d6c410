//! Errors and timeouts of an exchange with an endpoint.

use super::request_body::{BodyProgress, BoxError};
use crate::connection::Alarm;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// Time limits of an exchange.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Time without a byte from the server.
    pub(crate) read: Duration,
    /// Time without the server reading a byte of the request's body.
    pub(crate) write: Duration,
    /// Deadline of the response's header.
    pub(crate) header: Option<Instant>,
    /// Deadline of the complete response.
    pub(crate) whole: Option<Instant>,
}

/// Reason for a missing or incomplete response.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// No byte of the request was sent.
    NotSent,
    /// The server has reset the request's stream without processing it (RFC 9113 section 8.7).
    Refused,
    /// The server has ended its connection before the request's stream, which it has not processed (RFC 9113 section
    /// 6.8).
    BeyondGoaway,
    /// One of the [`Limits`] was exceeded.
    TimedOut,
    /// Receiving the request's body from the client failed.
    Client(ClientBodyError),
    /// The connection failed, or the response is malformed.
    Broken(BoxError),
}

impl ExchangeError {
    /// Returns the reason for the access log.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::NotSent => "upstream closed",
            Self::Refused | Self::BeyondGoaway => "upstream refused",
            Self::TimedOut => "upstream timeout",
            Self::Client(ClientBodyError::TimedOut) => "client timeout",
            Self::Client(ClientBodyError::TooLarge) => "body too large",
            Self::Client(_) => "client body",
            Self::Broken(_) => "upstream reset",
        }
    }
}

impl fmt::Display for ExchangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSent => f.write_str("the upstream closed the connection before the request"),
            Self::Refused => f.write_str("the upstream refused the request"),
            Self::BeyondGoaway => f.write_str("the upstream ended the connection before the request"),
            Self::TimedOut => f.write_str("upstream timeout"),
            Self::Client(error) => write!(f, "request body: {error}"),
            Self::Broken(error) => write!(f, "upstream connection: {error}"),
        }
    }
}

impl std::error::Error for ExchangeError {}

/// Reason for an incomplete request body.
#[derive(Debug)]
pub(crate) enum ClientBodyError {
    /// The client timed out.
    TimedOut,
    /// The body exceeds its size limit.
    TooLarge,
    /// The connection failed, or the body is malformed.
    Broken(BoxError),
}

impl ClientBodyError {
    /// Copies the error.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::TimedOut => Self::TimedOut,
            Self::TooLarge => Self::TooLarge,
            Self::Broken(error) => Self::Broken(error.to_string().into()),
        }
    }

    /// Returns the status code for the client, if a response can be sent (RFC 9110 section 15.5).
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::TimedOut => 408,
            Self::TooLarge => 413,
            Self::Broken(_) => 400,
        }
    }
}

impl fmt::Display for ClientBodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("client timeout"),
            Self::TooLarge => f.write_str("size limit exceeded"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientBodyError {}

impl From<h2::Error> for ExchangeError {
    fn from(error: h2::Error) -> Self {
        // h2 reports the server's GOAWAY only for streams beyond the last one that it names.
        if error.is_go_away() && error.is_remote() {
            Self::BeyondGoaway
        } else if error.reason() == Some(h2::Reason::REFUSED_STREAM) {
            Self::Refused
        } else {
            Self::Broken(error.into())
        }
    }
}

/// Enforces the time limits of an exchange.
#[derive(Debug)]
pub(crate) struct Watchdog {
    limits: Limits,
    /// Time since which there was no progress; `None` while no task waits.
    since: Option<Instant>,
    header_seen: bool,
    body: Option<(Arc<BodyProgress>, u32)>,
}

impl Watchdog {
    pub(crate) fn new(limits: Limits, body: Option<Arc<BodyProgress>>) -> Self {
        let body = body.map(|progress| (progress, 0));
        Self { limits, since: None, header_seen: false, body }
    }

    /// Records the response's header.
    pub(crate) fn header(&mut self) {
        self.header_seen = true;
        self.renew();
    }

    /// Records a part of the response.
    pub(crate) fn renew(&mut self) {
        self.since = None;
    }

    /// Becomes ready when a limit is exceeded, with the side that is responsible.
    pub(crate) fn poll_overdue(
        &mut self,
        context: &mut Context<'_>,
        alarm: &mut Alarm,
    ) -> Poll<ExchangeError> {
        let stall = self.stall_due();
        let header = self.limits.header.filter(|_| !self.header_seen);
        let Some(due) = [stall, header, self.limits.whole].into_iter().flatten().min() else {
            return Poll::Pending;
        };
        ready!(alarm.poll_due(context, due));
        // A server that has not received the request cannot respond, and must not be considered faulty.
        let waits_for_client = self.body.as_ref().is_some_and(|(progress, _)| progress.waits_for_client());
        Poll::Ready(match waits_for_client {
            true => ExchangeError::Client(ClientBodyError::TimedOut),
            false => ExchangeError::TimedOut,
        })
    }

    fn stall_due(&mut self) -> Option<Instant> {
        let mut limit = self.limits.read;
        if let Some((progress, seen)) = &mut self.body {
            let frames = progress.frames();
            if frames != *seen || progress.waits_for_client() {
                (*seen, self.since) = (frames, None);
            }
            if progress.waits_for_client() {
                return None;
            }
            if !progress.is_complete() {
                limit = self.limits.write;
            }
        }
        Some(*self.since.get_or_insert_with(Instant::now) + limit)
    }
}
