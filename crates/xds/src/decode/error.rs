//! What can be wrong with a message, and where.

/// Why there is no tree, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{fault}", .path, if .path.is_empty() { "" } else { ": " })]
pub struct DecodeError {
    /// Of the field, as in `virtual_hosts[3].routes[0].match`.
    pub path: String,
    /// What is wrong there.
    pub fault: Fault,
}

/// What can be wrong with a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The wire format is violated.
    #[error("not a protobuf message: {0}")]
    Malformed(&'static str),
    /// Lengths do not fit.
    #[error("not a protobuf message: it ends in the middle of a field")]
    CutShort,
    /// A field's wire type is not that of its declaration.
    #[error("its wire type is not that of the field {0}")]
    WrongType(String),
    /// Text that is not UTF-8.
    #[error("text that is not UTF-8")]
    NotUtf8,
    /// See the [module](super).
    #[error("given more than once")]
    Twice,
    /// A value that has no meaning, such as a duration with a billion nanoseconds.
    #[error("{0}")]
    Meaningless(&'static str),
    /// [`Limits::depth`](crate::Limits::depth).
    #[error("messages are nested too deeply")]
    TooDeep,
    /// [`Limits::nodes`](crate::Limits::nodes).
    #[error("there is too much in one response")]
    TooLarge,
    /// The type URL is not a resource's.
    #[error("a resource of type {0} is not known")]
    UnknownResource(String),
}

/// Type URLs and names of others, for messages.
pub(crate) fn shortened(text: &str) -> String {
    const MAX: usize = 200;
    match text.char_indices().nth(MAX) {
        Some((end, _)) => format!("{}...", text[..end].escape_debug()),
        None => text.escape_debug().to_string(),
    }
}
