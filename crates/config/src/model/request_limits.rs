use std::num::NonZeroUsize;

/// How large the requests of a chain may be.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestLimits {
    /// Bytes of a request's header; a larger one is answered with 431.
    pub header: usize,
    /// Fields of a request's header; one with more is answered with 431.
    pub fields: NonZeroUsize,
    /// Bytes of its path and query; a longer one is answered with 414. `None`: as many as a header has.
    pub url: Option<usize>,
    /// Bytes of its body, on routes that say nothing of it; a larger one is answered with 413. `None`: any number.
    pub body: Option<u64>,
}

/// How large the bodies of a route's requests may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RouteBodyLimit {
    /// As large as its chain says.
    #[default]
    OfChain,
    /// Of any size.
    Unlimited,
    /// So many bytes.
    Bytes(u64),
}

impl RequestLimits {
    /// How many fields a header has if nothing is said.
    pub const FIELDS: NonZeroUsize = NonZeroUsize::MIN.saturating_add(99);

    /// Bytes of the body of a route's request.
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
