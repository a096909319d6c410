//! What is stapled to one certificate, now.

use crate::{
    Failure, Inquiry, UnixTime, Validity,
    check::{Status, check},
    kept, unix_now,
};
use arc_swap::ArcSwapOption;
use std::{
    fmt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
};

/// The response that is stapled to a certificate: none at first, and from then on the newest that is good.
pub struct Staple {
    /// For logs.
    pub(crate) title: String,
    pub(crate) inquiry: Inquiry,
    /// Whether clients refuse the certificate without one.
    pub(crate) is_required: bool,
    current: ArcSwapOption<Response>,
    /// Where it outlives this process.
    file: Option<PathBuf>,
    /// When the authority has known it to be revoked, or [`NEVER`].
    revoked: AtomicI64,
}

const NEVER: UnixTime = UnixTime::MIN;

/// A response that was checked.
struct Response {
    der: Box<[u8]>,
    validity: Validity,
}

/// Whether there is something to staple.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Until this time.
    Valid(UnixTime),
    /// Nothing has been obtained, or it has expired.
    Missing,
    /// The authority has revoked the certificate.
    Revoked,
}

impl Staple {
    /// Nothing yet. `title` tells the certificate from others; `is_required` is whether it [must be
    /// stapled](crate::must_be_stapled).
    pub fn new(inquiry: Inquiry, title: String, is_required: bool) -> Self {
        let (current, revoked) = (ArcSwapOption::empty(), AtomicI64::new(NEVER));
        Self { title, inquiry, is_required, current, file: None, revoked }
    }

    /// With what a process before has left in this file, if it is still good; what comes is kept there.
    #[must_use]
    pub fn kept_in(self, file: PathBuf) -> Self {
        if let Some(der) = kept::read(&file) {
            let offered = self.offer(&der, unix_now());
            tracing::debug!(
                certificate = self.title,
                ok = offered.is_ok(),
                "an OCSP response was read from its file"
            );
        }
        Self { file: Some(file), ..self }
    }

    /// Has a response outlive this process.
    pub(crate) fn keep(&self, der: &[u8]) {
        if let Some(file) = &self.file
            && let Err(error) = kept::write(file, der)
        {
            tracing::warn!(certificate = self.title, file = %file.display(), %error, "an OCSP response could not be written to its file");
        }
    }

    /// Hands the response, in DER, to `take`, unless there is none that holds now.
    pub fn with_response<T>(&self, now: UnixTime, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let current = self.current.load();
        let current = current.as_ref().filter(|current| now < current.validity.next_update)?;
        Some(take(&current.der))
    }

    /// Whether there is a response now.
    pub fn state(&self, now: UnixTime) -> State {
        match self.validity() {
            _ if self.revoked.load(Ordering::Relaxed) != NEVER => State::Revoked,
            Some(Validity { next_update, .. }) if now < next_update => State::Valid(next_update),
            _ => State::Missing,
        }
    }

    /// Of the newest response, which may have expired.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.current.load().as_ref().map(|current| current.validity)
    }

    /// Staples this response from now on, if it is good. A certificate that is revoked loses the one that it has, and
    /// one of before changes nothing any more.
    pub(crate) fn offer(&self, der: &[u8], now: UnixTime) -> Result<Validity, Failure> {
        let Status { is_revoked, validity } = check(der, &self.inquiry, now)?;
        if is_revoked {
            self.revoked.store(validity.this_update, Ordering::Relaxed);
            self.current.store(None);
            return Err(Failure::Revoked);
        }
        if validity.this_update < self.revoked.load(Ordering::Relaxed) {
            return Err(Failure::unusable("it is older than the one by which the certificate was revoked"));
        }
        self.revoked.store(NEVER, Ordering::Relaxed);
        // Caches may answer with an older one than before.
        if self.validity().is_none_or(|known| known.next_update <= validity.next_update) {
            self.current.store(Some(Arc::new(Response { der: der.into(), validity })));
        }
        Ok(validity)
    }
}

impl fmt::Debug for Staple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staple")
            .field("title", &self.title)
            .field("validity", &self.validity())
            .finish_non_exhaustive()
    }
}
