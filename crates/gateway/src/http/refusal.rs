//! Why a request is not served, and what its client is told.

use super::error_page;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::time::Duration;

/// Why a request is not let in, and how it is answered.
pub(super) struct Refusal<'a> {
    /// For the log.
    pub(super) reason: &'a str,
    /// For the metric of who is not let in; nothing for what is counted elsewhere.
    pub(super) what: Option<&'static str>,
    /// Of calls of gRPC, in the place of what the status means for them.
    pub(super) grpc_status: Option<&'static str>,
    /// For the access log, where the status does not say it.
    pub(super) error: Option<&'static str>,
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    /// The body is the gateway's own, and a page of the configuration's may take its place.
    pub(super) is_own: bool,
}

/// An error in the form that the client reads, with these headers; without words, the status says its name. The reason is
/// the caller's to say.
pub(super) fn page(
    status: u16,
    words: &'static str,
    mut headers: HeaderMap,
    request: &HeaderMap,
) -> Refusal<'static> {
    let page = error_page::of(status, words, request);
    if let Ok(content_type) = HeaderValue::try_from(page.content_type) {
        headers.insert(header::CONTENT_TYPE, content_type);
    }
    Refusal {
        reason: "",
        what: None,
        grpc_status: None,
        error: None,
        status,
        headers,
        body: page.body,
        is_own: true,
    }
}

/// Says when to come back.
pub(super) fn retry_after(wait: Duration) -> HeaderMap {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    HeaderMap::from_iter([(header::RETRY_AFTER, seconds.max(1).into())])
}
