//! Conditions on metadata that processing steps of a request store for later steps.

use super::TextMatch;

/// A condition on a value that a step has stored under a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataMatch {
    /// The step, by the name of Envoy's filter.
    pub filter: String,
    /// The path of the value.
    pub path: Vec<String>,
    /// The condition on the value.
    pub value: ValueMatch,
    /// Whether the condition is inverted.
    pub invert: bool,
}

/// A condition on a value. It does not hold for a missing value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ValueMatch {
    /// Is `null`.
    Null,
    /// Is this boolean.
    Bool(bool),
    /// Is a text that matches.
    Text(TextMatch),
    /// Is present.
    Present,
    /// Is a list with an element that matches.
    OneOf(Box<ValueMatch>),
    /// Meets one of these conditions.
    Any(Vec<ValueMatch>),
}
