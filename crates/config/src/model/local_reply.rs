//! What becomes of the gateway's own answers: Envoy's `local_reply_config`.

use super::{HeaderChange, HeaderMatch, HeaderPart};
use bytes::Bytes;
use std::collections::BTreeMap;

/// How the gateway's own answers are written: errors, redirects, and what routes respond.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LocalReplies {
    /// The first that is for an answer changes it.
    pub mappers: Vec<ReplyMapper>,
    /// The form of bodies, where the mapper says none; `None` is their text.
    pub format: Option<ReplyFormat>,
}

/// A change to some of the gateway's own answers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyMapper {
    /// For which.
    pub filter: ReplyFilter,
    /// In the place of the answer's own.
    pub status: Option<u16>,
    /// Likewise.
    pub body: Option<Bytes>,
    /// The form of the body.
    pub format: Option<ReplyFormat>,
    /// Made to the answer's headers, before the route's own changes.
    pub headers: Vec<HeaderChange>,
}

/// A condition on an answer and its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyFilter {
    /// On the status, before it is changed.
    Status(Comparison, u16),
    /// On the request.
    Header(HeaderMatch),
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
}

/// How numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// The same.
    Equal,
    /// Another.
    NotEqual,
    /// This or more.
    AtLeast,
    /// This or less.
    AtMost,
}

/// The form of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyFormat {
    /// The `Content-Type`.
    pub content_type: String,
    /// What is written.
    pub body: ReplyBody,
    /// What is not known is left out, in place of `-` in text and `null` in JSON.
    pub omit_empty: bool,
}

/// What is written of an answer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyBody {
    /// Text.
    Text(Vec<ReplyPart>),
    /// JSON.
    Json(ReplyJson),
}

/// A value of JSON with what is put in.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyJson {
    /// An object, its members in the order of their names.
    Object(BTreeMap<String, Self>),
    /// An array.
    Array(Vec<Self>),
    /// A string, or the number or null that its only part is.
    Text(Vec<ReplyPart>),
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyPart {
    /// This.
    Literal(String),
    /// A header of the request, or `:path`, `:method`, `:authority` or `:scheme`.
    Request(String),
    /// What is known of connection and request.
    Known(HeaderPart),
    /// The status, as it is sent.
    Status,
    /// The body before it is given its form.
    Body,
}

impl Comparison {
    /// Whether it holds of a value.
    pub fn holds(self, value: u16, other: u16) -> bool {
        match self {
            Self::Equal => value == other,
            Self::NotEqual => value != other,
            Self::AtLeast => value >= other,
            Self::AtMost => value <= other,
        }
    }
}
