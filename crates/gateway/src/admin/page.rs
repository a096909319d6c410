//! A page of the admin address, and its headers.

use super::dashboard::CONTENT_SECURITY_POLICY;
use http::{HeaderValue, Response, StatusCode, header};

/// A page of the admin address.
#[derive(Clone, Debug)]
pub struct Page {
    /// HTTP status code.
    pub status: StatusCode,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Complete body.
    pub body: String,
}

pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// Headers of every response: no caching, content sniffing, embedding or referrers.
const EVERYWHERE: [(header::HeaderName, &str); 4] = [
    (header::CACHE_CONTROL, "no-store"),
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
];

impl Page {
    pub(super) fn text(status: StatusCode, body: &str) -> Self {
        Self { status, content_type: TEXT, body: body.to_owned() }
    }

    pub(super) fn json(value: &serde_json::Value) -> Self {
        Self { status: StatusCode::OK, content_type: "application/json", body: format!("{value:#}\n") }
    }

    pub(super) fn into_response(self) -> Response<String> {
        let mut response = Response::new(self.body);
        *response.status_mut() = self.status;
        for (name, value) in [(header::CONTENT_TYPE, self.content_type)].into_iter().chain(EVERYWHERE) {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
