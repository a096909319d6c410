use std::num::NonZeroUsize;

/// Limits on the size of a chain's requests.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLimits {
    /// Maximum bytes of a request's header; a larger one is rejected with 431.
    pub header: usize,
    /// Maximum number of fields of a request's header; one with more is rejected with 431.
    pub fields: NonZeroUsize,
    /// Maximum bytes of its path and query; a longer one is rejected with 414. `None`: the limit of the header.
    pub url: Option<usize>,
    /// Maximum bytes of its body, on routes without their own limit; a larger one is rejected with 413. `None`: no
    /// limit.
    pub body: Option<u64>,
}

/// Limit on the size of request bodies on a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RouteBodyLimit {
    /// The limit of its chain.
    #[default]
    OfChain,
    /// No limit.
    Unlimited,
    /// Maximum number of bytes.
    Bytes(u64),
}

impl RequestLimits {
    /// The default number of header fields.
    pub const FIELDS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);

    /// Returns the limit on the body of a route's request.
    pub fn body_of(&self, route: RouteBodyLimit) -> Option<u64> {
        match route {
            RouteBodyLimit::OfChain => self.body,
            RouteBodyLimit::Unlimited => None,
            RouteBodyLimit::Bytes(bytes) => Some(bytes),
        }
    }
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { header: 64 * 1024, fields: Self::FIELDS, url: None, body: None }
    }
}
