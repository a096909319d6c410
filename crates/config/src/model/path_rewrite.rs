//! Paths that replace those of requests.

use super::{Expression, Template};

/// The path that is sent to a server, or in a redirect. The query is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PathRewrite {
    /// Replaces the part matched by the route's prefix (with an exact path, the whole path). Not for regular
    /// expressions.
    Prefix(String),
    /// Replaces every match of the expression by the text, in which `$1` or `${1}` is the first group.
    Regex(Expression, String),
    /// Replaces the whole path. In a redirect it may include a query.
    Full(String),
    /// Replaces the whole path by a text with placeholders, which may include a query.
    Template(Template),
}
