//! Format of the gateway's own responses: Envoy's `local_reply_config`.

use super::{HeaderChange, HeaderMatch, HeaderPart};
use bytes::Bytes;
use std::collections::BTreeMap;

/// The format of the gateway's own responses: errors, redirects, and fixed responses of routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LocalReplies {
    /// Mappers; the first that matches a response changes it.
    pub mappers: Vec<ReplyMapper>,
    /// The format of bodies, unless the mapper has one; `None` keeps their text.
    pub format: Option<ReplyFormat>,
}

/// A change to some of the gateway's own responses.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyMapper {
    /// The condition on responses.
    pub filter: ReplyFilter,
    /// The status that replaces the response's own.
    pub status: Option<u16>,
    /// The body that replaces the response's own.
    pub body: Option<Bytes>,
    /// The format of the body.
    pub format: Option<ReplyFormat>,
    /// Changes to the response's headers, before the route's own.
    pub headers: Vec<HeaderChange>,
}

/// A condition on a response and its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyFilter {
    /// A condition on the status, before it is changed.
    Status(Comparison, u16),
    /// A condition on the request.
    Header(HeaderMatch),
    /// All of these hold.
    All(Vec<Self>),
    /// One of these holds.
    Any(Vec<Self>),
}

/// A comparison of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Comparison {
    /// Equal.
    Equal,
    /// Unequal.
    NotEqual,
    /// Greater or equal.
    AtLeast,
    /// Less or equal.
    AtMost,
}

/// The format of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReplyFormat {
    /// The `Content-Type`.
    pub content_type: String,
    /// The template of the body.
    pub body: ReplyBody,
    /// Whether unknown values are omitted, instead of `-` in text and `null` in JSON.
    pub omit_empty: bool,
}

/// The template of a body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyBody {
    /// Text.
    Text(Vec<ReplyPart>),
    /// JSON.
    Json(ReplyJson),
}

/// A JSON value with variables.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyJson {
    /// An object, its members in the order of their names.
    Object(BTreeMap<String, Self>),
    /// An array.
    Array(Vec<Self>),
    /// A string, or the number or null that is its only part.
    Text(Vec<ReplyPart>),
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ReplyPart {
    /// Fixed text.
    Literal(String),
    /// A header of the request, or `:path`, `:method`, `:authority` or `:scheme`.
    Request(String),
    /// A property of the connection or the request.
    Known(HeaderPart),
    /// The status, as it is sent.
    Status,
    /// The body before formatting.
    Body,
}

impl Comparison {
    /// Returns whether the comparison holds for a value.
    pub fn holds(self, value: u16, other: u16) -> bool {
        match self {
            Self::Equal => value == other,
            Self::NotEqual => value != other,
            Self::AtLeast => value >= other,
            Self::AtMost => value <= other,
        }
    }
}
