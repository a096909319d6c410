use super::Place;
use bytes::Bytes;

/// Which requests go where.
#[derive(Clone, Debug)]
pub struct Route {
    /// Exact (`example.com`) or wildcard (`*.example.com`, one label) host; `None` matches every host.
    pub host: Option<String>,
    /// Path prefix, matched on whole segments; `None` matches every path.
    pub path: Option<String>,
    /// Where a matching request goes.
    pub target: Target,
    /// Where the route was written.
    pub place: Place,
}

/// Where a matching request goes.
#[derive(Clone, Debug)]
pub enum Target {
    /// The upstream of this name.
    Upstream(String),
    /// A fixed answer.
    Respond(Respond),
}

/// A fixed answer, without an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Respond {
    /// HTTP status.
    pub status: u16,
    /// `Content-Type` of the body.
    pub content_type: String,
    /// The whole body.
    pub body: Bytes,
}

impl Respond {
    /// This text, with status 200.
    pub fn text(body: impl Into<Bytes>) -> Self {
        Self { status: 200, content_type: "text/plain; charset=utf-8".into(), body: body.into() }
    }
}
