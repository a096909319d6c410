use http::HeaderName;
use std::time::Duration;

/// By what requests keep to a server, where the upstream's servers are chosen by [`super::Balance::Hash`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HashPolicy {
    /// What is looked at.
    pub on: HashOn,
    /// If it is there, nothing after it is looked at.
    pub terminal: bool,
}

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HashOn {
    /// The client's address.
    ClientIp,
    /// The values of this header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie {
        /// Its name.
        name: String,
        /// Requests without it get one that lasts so long, or, with zero, as long as the browser; `None` sets none.
        lifetime: Option<Duration>,
        /// For which paths the one that is set counts; `None`: as browsers do without.
        path: Option<String>,
    },
    /// The value of this parameter of the query.
    Query(String),
}
