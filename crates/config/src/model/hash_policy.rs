use http::HeaderName;
use std::time::Duration;

/// A hash key of requests, for upstreams with [`super::Balance::Hash`]: requests with equal keys stay on one server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HashPolicy {
    /// The property that is hashed.
    pub on: HashOn,
    /// Whether later policies are ignored if this property is present.
    pub terminal: bool,
}

/// A property of a request that is hashed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashOn {
    /// The client's address.
    ClientIp,
    /// The values of this header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie {
        /// The name.
        name: String,
        /// Lifetime of the cookie that is set for requests without it; zero makes it a session cookie, `None` sets
        /// none.
        lifetime: Option<Duration>,
        /// The `Path` attribute of the cookie that is set; `None` omits it.
        path: Option<String>,
    },
    /// The value of this parameter of the query.
    Query(String),
}
