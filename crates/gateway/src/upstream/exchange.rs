//! What may go wrong between a request and its response, and how long each may take.

use super::request_body::{BodyProgress, BoxError};
use crate::connection::Alarm;
use hyper::client::conn::TrySendError;
use std::{
    fmt,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, Instant},
};

/// How long a server may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without a byte from the server.
    pub(crate) read: Duration,
    /// Without the server taking a byte of the request's body.
    pub(crate) write: Duration,
    /// When the response's header must be there.
    pub(crate) header: Option<Instant>,
    /// When the response must be complete.
    pub(crate) whole: Option<Instant>,
}

/// Why there is no response, or not the whole of it.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// Nothing of the request was sent.
    NotSent,
    /// The server has said that it has not looked at the request (RFC 9113 section 8.7).
    Refused,
    /// One of the [`Limits`] has passed.
    TimedOut,
    /// The client failed to send its request's body.
    Client(ClientBodyError),
    /// The connection broke, or what came is no HTTP.
    Broken(BoxError),
}

impl ExchangeError {
    /// For the access log.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::NotSent => "upstream closed",
            Self::Refused => "upstream refused",
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
            Self::NotSent => f.write_str("the server closed the connection before the request"),
            Self::Refused => f.write_str("the server refused the request"),
            Self::TimedOut => f.write_str("the server took too long"),
            Self::Client(error) => write!(f, "the request's body: {error}"),
            Self::Broken(error) => write!(f, "the connection to the server: {error}"),
        }
    }
}

impl std::error::Error for ExchangeError {}

/// Why a client's body has no end.
#[derive(Debug)]
pub(crate) enum ClientBodyError {
    /// The client took too long.
    TimedOut,
    /// More has come than the body may have.
    TooLarge,
    /// The connection broke, or what came is no body.
    Broken(BoxError),
}

impl ClientBodyError {
    /// The same, for somebody else.
    pub(crate) fn copy(&self) -> Self {
        match self {
            Self::TimedOut => Self::TimedOut,
            Self::TooLarge => Self::TooLarge,
            Self::Broken(error) => Self::Broken(error.to_string().into()),
        }
    }

    /// What the client is told, if it can be told (RFC 9110 section 15.5).
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
            Self::TimedOut => f.write_str("the client took too long"),
            Self::TooLarge => f.write_str("it is larger than it may be"),
            Self::Broken(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClientBodyError {}

impl<T> From<TrySendError<T>> for ExchangeError {
    fn from(mut error: TrySendError<T>) -> Self {
        match error.take_message() {
            Some(_) => Self::NotSent,
            None => error.into_error().into(),
        }
    }
}

impl From<hyper::Error> for ExchangeError {
    fn from(error: hyper::Error) -> Self {
        let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&error);
        while let Some(cause) = source {
            if let Some(client) = cause.downcast_ref::<ClientBodyError>() {
                return Self::Client(client.copy());
            }
            if let Some(h2) = cause.downcast_ref::<h2::Error>() {
                let refused = h2.reason() == Some(h2::Reason::REFUSED_STREAM)
                    || h2.is_go_away() && h2.reason() == Some(h2::Reason::NO_ERROR);
                if refused {
                    return Self::Refused;
                }
            }
            source = cause.source();
        }
        Self::Broken(error.into())
    }
}

/// Watches that an exchange moves.
#[derive(Debug)]
pub(super) struct Watchdog {
    limits: Limits,
    /// Since when nothing has moved; `None` while nobody waits.
    since: Option<Instant>,
    header_seen: bool,
    body: Option<(Arc<BodyProgress>, u32)>,
}

impl Watchdog {
    pub(super) fn new(limits: Limits, body: Option<Arc<BodyProgress>>) -> Self {
        let body = body.map(|progress| (progress, 0));
        Self { limits, since: None, header_seen: false, body }
    }

    /// The response's header is there.
    pub(super) fn header(&mut self) {
        self.header_seen = true;
        self.renew();
    }

    /// A part of the response has come.
    pub(super) fn renew(&mut self) {
        self.since = None;
    }

    /// Nothing has come: ready once that has lasted too long, with whose doing it is.
    pub(super) fn poll_overdue(
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
        // A server that has not got the request cannot answer it, and must not be taken for one that fails.
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
