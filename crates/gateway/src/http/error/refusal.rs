//! Refusals: requests that are rejected, with the response to the client.

use super::error_page;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use std::{borrow::Cow, time::Duration};

/// Reason and error of requests that are refused or ended because memory is short.
pub(crate) const MEMORY_LIMIT: &str = "memory limit";

/// A rejected request, with its reason and response.
pub(crate) struct Refusal {
    /// Reason for the log.
    pub(crate) reason: Cow<'static, str>,
    /// Label of the metric of denied requests; `None` if the request is counted elsewhere.
    pub(crate) counted_as: Option<&'static str>,
    /// gRPC status, in place of the one mapped from the HTTP status.
    pub(crate) grpc_status: Option<&'static str>,
    /// Error for the access log, where the status does not tell it.
    pub(crate) error: Option<&'static str>,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Whether the body is the gateway's own; a configured error page may replace it.
    pub(crate) is_own: bool,
}

impl Refusal {
    /// A refusal with a body of the gateway's own.
    pub(crate) fn own(reason: impl Into<Cow<'static, str>>, status: u16, body: Bytes) -> Self {
        Self {
            reason: reason.into(),
            counted_as: None,
            grpc_status: None,
            error: None,
            status,
            headers: HeaderMap::new(),
            body,
            is_own: true,
        }
    }

    /// A refusal whose body a service or the configuration defines; error pages do not replace it.
    pub(crate) fn defined(reason: &'static str, status: u16, body: Bytes) -> Self {
        Self { is_own: false, ..Self::own(reason, status, body) }
    }

    /// A refusal with an error page in the client's format; an empty text stands for the status name.
    pub(crate) fn page(reason: &'static str, status: u16, words: &'static str, request: &HeaderMap) -> Self {
        let page = error_page::of(status, words, request);
        let content_type = HeaderValue::try_from(page.content_type).ok();
        let headers =
            content_type.map(|content_type| (header::CONTENT_TYPE, content_type)).into_iter().collect();
        Self { headers, ..Self::own(reason, status, page.body) }
    }

    /// Counts the refusal as a denied request, under this label.
    pub(crate) fn counted_as(self, label: &'static str) -> Self {
        Self { counted_as: Some(label), ..self }
    }

    /// Reports the reason as the error of the access log, too.
    pub(crate) fn logged_as(self, error: &'static str) -> Self {
        Self { error: Some(error), ..self }
    }

    /// Adds headers to the response.
    pub(crate) fn with_headers(mut self, headers: HeaderMap) -> Self {
        self.headers.extend(headers);
        self
    }

    /// Adds a `Retry-After` header (RFC 9110 section 10.2.3).
    pub(crate) fn retry_after(mut self, wait: Duration) -> Self {
        let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
        self.headers.insert(header::RETRY_AFTER, seconds.max(1).into());
        self
    }
}
