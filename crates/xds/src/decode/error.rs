//! Decoding errors.

/// A decoding error with its location.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{fault}", .path, if .path.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Path of the field, as in `virtual_hosts[3].routes[0].match`.
    pub path: String,
    /// The error at that path.
    pub fault: Fault,
}

/// Cause of a decoding error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// Violation of the wire format.
    #[error("not a protobuf message: {0}")]
    Malformed(&'static str),
    /// A length exceeds the input.
    #[error("not a protobuf message: it ends within a field")]
    CutShort,
    /// The wire type of a field differs from its declaration.
    #[error("wrong wire type for the field {0}")]
    WrongType(String),
    /// Text is not valid UTF-8.
    #[error("text is not valid UTF-8")]
    NotUtf8,
    /// A singular field occurs more than once; see the [module](super).
    #[error("given more than once")]
    Twice,
    /// A value is invalid, such as a duration with a billion nanoseconds.
    #[error("{0}")]
    Meaningless(&'static str),
    /// Exceeds [`Limits::depth`](crate::Limits::depth).
    #[error("messages are nested too deeply")]
    TooDeep,
    /// Exceeds [`Limits::nodes`](crate::Limits::nodes).
    #[error("the response is too large")]
    TooLarge,
    /// The type URL is not one of a resource.
    #[error("unknown resource type {0}")]
    UnknownResource(String),
}

/// Shortens and escapes type URLs and names from a control plane for use in messages.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
