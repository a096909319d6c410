//! Redirects and fixed responses.

use super::{PathRewrite, Template};
use bytes::Bytes;

/// A redirect. Parts that are `None` are those of the request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Redirect {
    /// `https` or `http`.
    pub scheme: Option<String>,
    /// The host, without a port.
    pub host: Option<Template>,
    /// The port. If `None` and the scheme changes, a default port of the old scheme is removed.
    pub port: Option<u16>,
    /// The path.
    pub path: Option<PathRewrite>,
    /// 301, 302, 303, 307 or 308.
    pub status: u16,
    /// Whether the query is removed.
    pub strip_query: bool,
}

/// A fixed response, without an upstream.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Respond {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type` of the body.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

impl Respond {
    /// Returns a response with this text and status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self { status: 200, content_type: "text/plain; charset=utf-8".into(), body: body.into() }
    }
}

impl Redirect {
    /// Returns a permanent redirect to the same URL with `https`.
    pub fn https() -> Self {
        let (scheme, host, port, path) = (Some("https".to_owned()), None, None, None);
        Self { scheme, host, port, path, status: 301, strip_query: false }
    }
}
