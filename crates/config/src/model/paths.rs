//! What becomes of a request's path before routes see it.

/// In which form a path is matched and sent on. The default lets no spelling of a path reach a server past a route that
/// matches another spelling of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Paths {
    /// Take out `.` and `..` segments, and decode escapes of unreserved characters (RFC 3986 sections 6.2.2.2 and
    /// 6.2.2.3).
    pub normalize: bool,
    /// Make one slash of several.
    pub merge_slashes: bool,
    /// `%2F` and `%5C`, a backslash, and `%00`, where servers disagree on what a segment is.
    pub escaped_slashes: Ambiguous,
    /// `;`, behind which some servers see a parameter that is not part of the segment.
    pub parameters: Ambiguous,
    /// What a server gets.
    pub send: SentPath,
}

/// What happens to a path that servers read in different ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ambiguous {
    /// It is matched and sent on as it is.
    Keep,
    /// It is answered with 400.
    Reject,
}

/// The path that a server gets where the route does not rewrite it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SentPath {
    /// The one that routes have seen.
    Normalized,
    /// The one that the client has sent.
    Received,
}

impl Paths {
    /// Every path as it came, as Envoy does unless it is told otherwise.
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
