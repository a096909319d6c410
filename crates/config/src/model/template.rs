//! Texts with placeholders for parts of a request.

use super::Expression;

/// A text with placeholders, which are replaced for each request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Template(pub Vec<TemplatePart>);

/// A part of a text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TemplatePart {
    /// Fixed text.
    Literal(String),
    /// A part of the request.
    Request(RequestPart),
}

/// A part of a request, as routes see it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum RequestPart {
    /// The host, without its port.
    Host,
    /// The path, without the query.
    Path,
    /// The query, without its question mark; empty without a query.
    Query,
    /// The group with this number of an expression that matches the path; empty if the group is not part of the match.
    Capture(Expression, usize),
}

impl Template {
    /// Returns a fixed text.
    pub fn literal(text: impl Into<String>) -> Self {
        Self(vec![TemplatePart::Literal(text.into())])
    }

    /// Returns the text if it has no placeholders.
    pub fn as_literal(&self) -> Option<&str> {
        match &self.0[..] {
            [TemplatePart::Literal(text)] => Some(text),
            _ => None,
        }
    }
}
