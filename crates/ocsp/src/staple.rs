//! The stapled response of a certificate.

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

/// OCSP response that is stapled to a certificate: none at first, then the newest valid one.
pub struct Staple {
    /// Name of the certificate in logs.
    pub(crate) title: String,
    pub(crate) inquiry: Inquiry,
    /// Whether clients reject the certificate without a response.
    pub(crate) is_required: bool,
    current: ArcSwapOption<Response>,
    /// File in which the response is stored across restarts.
    file: Option<PathBuf>,
    /// Time of the revocation response, or [`NEVER`].
    revoked: AtomicI64,
}

const NEVER: UnixTime = UnixTime::MIN;

/// A verified response.
struct Response {
    der: Box<[u8]>,
    validity: Validity,
}

/// Availability of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Valid until this time.
    Valid(UnixTime),
    /// No response was obtained, or it has expired.
    Missing,
    /// The certificate authority has revoked the certificate.
    Revoked,
}

impl Staple {
    /// Creates an empty staple. `title` identifies the certificate in logs; `is_required` is whether it [must be
    /// stapled](crate::must_be_stapled).
    pub fn new(inquiry: Inquiry, title: String, is_required: bool) -> Self {
        let (current, revoked) = (ArcSwapOption::empty(), AtomicI64::new(NEVER));
        Self { title, inquiry, is_required, current, file: None, revoked }
    }

    /// Restores the response of a previous process from this file, if it is still valid; new responses are stored
    /// there.
    #[must_use]
    pub fn kept_in(self, file: PathBuf) -> Self {
        if let Some(der) = kept::read(&file) {
            let offered = self.offer(&der, unix_now());
            tracing::debug!(
                certificate = self.title,
                ok = offered.is_ok(),
                "OCSP response restored from its file"
            );
        }
        Self { file: Some(file), ..self }
    }

    /// Stores a response for later processes.
    pub(crate) fn keep(&self, der: &[u8]) {
        if let Some(file) = &self.file
            && let Err(error) = kept::write(file, der)
        {
            tracing::warn!(certificate = self.title, file = %file.display(), %error, "cannot write an OCSP response to its file");
        }
    }

    /// Passes the current response, in DER, to `take`; returns `None` without a valid response.
    pub fn with_response<T>(&self, now: UnixTime, take: impl FnOnce(&[u8]) -> T) -> Option<T> {
        let current = self.current.load();
        let current = current.as_ref().filter(|current| now < current.validity.next_update)?;
        Some(take(&current.der))
    }

    /// Returns the availability of a response.
    pub fn state(&self, now: UnixTime) -> State {
        match self.validity() {
            _ if self.revoked.load(Ordering::Relaxed) != NEVER => State::Revoked,
            Some(Validity { next_update, .. }) if now < next_update => State::Valid(next_update),
            _ => State::Missing,
        }
    }

    /// Returns the validity of the newest response, which may have expired.
    pub(crate) fn validity(&self) -> Option<Validity> {
        self.current.load().as_ref().map(|current| current.validity)
    }

    /// Staples this response, if it is valid. A revoked certificate loses its response, and responses older than the
    /// revocation are rejected.
    pub(crate) fn offer(&self, der: &[u8], now: UnixTime) -> Result<Validity, Failure> {
        let Status { is_revoked, validity } = check(der, &self.inquiry, now)?;
        if is_revoked {
            self.revoked.store(validity.this_update, Ordering::Relaxed);
            self.current.store(None);
            return Err(Failure::Revoked);
        }
        if validity.this_update < self.revoked.load(Ordering::Relaxed) {
            return Err(Failure::unusable("it is older than the response that revoked the certificate"));
        }
        self.revoked.store(NEVER, Ordering::Relaxed);
        // Caches may serve an older response than before.
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
