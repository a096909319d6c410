//! Why a request is not served, and what its client is told.

use bytes::Bytes;
use http::HeaderMap;

/// Why a request is not let in, and how it is answered.
pub(super) struct Refusal<'a> {
    /// For the log.
    pub(super) reason: &'a str,
    /// For the metric of who is not let in; nothing for what is counted elsewhere.
    pub(super) what: Option<&'static str>,
    /// For the access log, where the status does not say it.
    pub(super) error: Option<&'static str>,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}
