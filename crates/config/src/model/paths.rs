//! Normalization of a request's path before routing.

/// Normalization of paths, for matching and forwarding. With the default, no spelling of a path reaches a server past
/// a route that matches another spelling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Paths {
    /// Remove `.` and `..` segments, and decode escapes of unreserved characters (RFC 3986 sections 6.2.2.2 and
    /// 6.2.2.3).
    pub normalize: bool,
    /// Merge several slashes into one.
    pub merge_slashes: bool,
    /// Handling of `%2F` and `%5C`, a backslash, and `%00`, for which servers disagree on segment boundaries.
    pub escaped_slashes: Ambiguous,
    /// Handling of `;`, after which some servers expect a parameter that is not part of the segment.
    pub parameters: Ambiguous,
    /// The path that is sent to servers.
    pub send: SentPath,
}

/// The handling of a path that servers interpret in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ambiguous {
    /// Match and forward it unchanged.
    Keep,
    /// Reject it with 400.
    Reject,
}

/// The path that a server receives if the route does not rewrite it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SentPath {
    /// The one that routes have matched.
    Normalized,
    /// The one that the client has sent.
    Received,
}

impl Paths {
    /// No normalization, which is Envoy's default.
    pub const UNCHANGED: Self = Self {
        normalize: false,
        merge_slashes: false,
        escaped_slashes: Ambiguous::Keep,
        parameters: Ambiguous::Keep,
        send: SentPath::Normalized,
    };
}

impl Default for Paths {
    fn default() -> Self {
        Self {
            normalize: true,
            merge_slashes: true,
            escaped_slashes: Ambiguous::Reject,
            parameters: Ambiguous::Reject,
            send: SentPath::Normalized,
        }
    }
}
